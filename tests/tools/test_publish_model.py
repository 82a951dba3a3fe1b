import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image

from mmseg_cct.apis.inference import load_model
from mmseg_cct.engine.checkpoints import read_checkpoint, saved_config
from mmseg_cct.interop.export import InferenceGraph


def test_publishes_and_exports(cct, trained, tmp_path, capsys):
    pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    arguments = str(trained.checkpoint), tmp_path / 'cct.pth', '--onnx'
    capsys.readouterr()
    cct.run('publish_model', *arguments, '--size', 40, 48)
    lines = capsys.readouterr().out.splitlines()
    published, onnx = (next(tmp_path.glob(f'cct-*.{kind}')) for kind in ('pth', 'onnx'))
    assert published.stem == onnx.stem
    assert lines[0].startswith(f'{published}: 0.')
    assert lines[-1].startswith(f'{onnx}: images of 40x48, logits equal to those of PyTorch (to ')
    kept = onnx.read_bytes()
    with pytest.raises(SystemExit):
        cct.run('publish_model', *arguments, '--size', 32, 32)
    expected = f'error: {onnx}: exists; expected a new file, or --overwrite'
    assert capsys.readouterr().err.splitlines()[-1] == expected
    assert onnx.read_bytes() == kept


# torch and this project are not there for the script
ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(('torch', 'mmengine', 'mmseg', 'mmcv', 'mmseg_cct'))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


def test_an_exported_file_predicts_without_torch(cct, trained, tmp_path, capsys):
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    cct.run('publish_model', str(trained.checkpoint), tmp_path / 'cct.pth', '--onnx', '--size', 40, 48)
    (file,) = tmp_path.glob('cct-*.onnx')
    out, script = tmp_path / 'out', cct.tools / 'predict_onnx.py'
    done = cct.shell('python', '-c', ALONE, script, file, cct.images, '--out', out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f'4 masks in {out}'
    (published,) = map(str, tmp_path.glob('cct-*.pth'))
    model = load_model(saved_config(read_checkpoint(published), published), published, 'cpu')
    graph = InferenceGraph(model, (40, 48))
    for path in cct.images.iterdir():
        image = cv2.imread(str(path))
        rgb = cv2.resize(image, (48, 40))[..., ::-1].transpose(2, 0, 1)
        logits = graph(torch.from_numpy(rgb[None].astype(np.float32)))[0].numpy()
        expected = [cv2.resize(each, image.shape[1::-1]) for each in logits]
        mask = Image.open(out / f'{path.stem}.png')
        assert (np.asarray(mask) == np.argmax(expected, 0)).mean() > 0.999
        assert mask.getpalette()[:9] == np.ravel(model.dataset_meta['palette']).tolist()
    (cct.images / 'broken.png').write_bytes(b'no image')
    done = cct.shell('python', script, file, cct.images / 'broken.png', '--out', out)
    assert (done.returncode, done.stderr) == (1, f'{cct.images}/broken.png: cannot be read\n')


@pytest.mark.parametrize('imports', [['mmseg_cct'], ['mmseg_cct.plugin', 'my_net']])
def test_parts_of_the_users_own_need_the_config(cct, trained, tmp_path, capsys, imports):
    content = torch.load(str(trained.checkpoint), weights_only=False)
    config = Config.fromstring(content['meta']['cfg'], '.py')
    config.custom_imports.imports = imports
    config.model.backbone.type = 'MyNet'
    content['meta']['cfg'] = config.pretty_text
    torch.save(content, tmp_path / 'own.pth')
    with pytest.raises(SystemExit):
        cct.run('publish_model', tmp_path / 'own.pth', tmp_path / 'out.pth', '--onnx')
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: model.backbone.type: no 'MyNet'")
    hint = '; expected --config CONFIG, which imports my_net; a checkpoint may not'
    assert line.endswith(hint) == ('my_net' in imports) and len(imports) == 1 + (hint in line)
