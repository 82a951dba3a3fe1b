import importlib.util

import pytest
import torch
from mmengine.config import Config


def test_publishes_and_exports(tiny, tiny_cct, tmp_path, capsys):
    pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    arguments = tiny_cct.checkpoint, tmp_path / 'cct.pth', '--onnx', '--torchscript'
    capsys.readouterr()
    tiny.run('publish_model', *arguments, '--size', 40, 48)
    lines = capsys.readouterr().out.splitlines()
    (published, onnx, torchscript) = [
        next(tmp_path.glob(f'cct-*.{kind}')) for kind in ('pth', 'onnx', 'pt')
    ]
    assert published.stem == onnx.stem == torchscript.stem
    assert lines[0].startswith(f'{published}: 0.')
    for line, file in zip(lines[-2:], (torchscript, onnx)):
        assert line.startswith(f'{file}: images of 40x48, logits equal to those of PyTorch (to ')
    kept = torchscript.read_bytes()
    with pytest.raises(SystemExit):
        tiny.run('publish_model', *arguments, '--size', 32, 32)
    expected = f'error: {torchscript}: exists; expected a new file, or --overwrite'
    assert capsys.readouterr().err.splitlines()[-1] == expected
    assert torchscript.read_bytes() == kept


def test_without_onnx_torchscript_is_written_still(tiny, tiny_cct, tmp_path, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec', lambda name, *a: None if name == 'onnx' else found(name, *a)
    )
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        tiny.run(
            'publish_model', tiny_cct.checkpoint, tmp_path / 'cct.pth', '--onnx', '--torchscript',
            '--size', 40, 48,
        )  # fmt: skip
    assert stop.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: --onnx: no package onnx; expected it: pip install 'mmseg_cct[export]'"
    )
    assert len(list(tmp_path.glob('cct-*.pt'))) == 1 and not list(tmp_path.glob('*.onnx'))


@pytest.mark.parametrize('imports', [['mmseg_cct'], ['mmseg_cct.plugin', 'my_net']])
def test_parts_of_the_users_own_need_the_config(tiny, tiny_cct, tmp_path, capsys, imports):
    content = torch.load(tiny_cct.checkpoint, weights_only=False)
    config = Config.fromstring(content['meta']['cfg'], '.py')
    config.custom_imports.imports = imports
    config.model.backbone.type = 'MyNet'
    content['meta']['cfg'] = config.pretty_text
    torch.save(content, tmp_path / 'own.pth')
    with pytest.raises(SystemExit):
        tiny.run('publish_model', tmp_path / 'own.pth', tmp_path / 'out.pth', '--torchscript')
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: model.backbone.type: no 'MyNet'")
    hint = '; --config CONFIG imports my_net, which a checkpoint may not'
    assert line.endswith(hint) == ('my_net' in imports) and len(imports) == 1 + (hint in line)
