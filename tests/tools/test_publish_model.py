import json
import re
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from PIL import Image

from mmseg_cct.apis import export

WAY = dict(channels=None, value_range=None, scale=[64, 48], keep_ratio=True, cannot=[])


def test_publishes_and_exports_at_a_size(cct, trained, tmp_path, capsys):
    pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    arguments = trained.checkpoint, tmp_path / 'cct.pth', '--onnx'
    capsys.readouterr()
    cct.run('publish_model', *arguments, '--size', 40, 48)
    lines = capsys.readouterr().out.splitlines()
    published, onnx = (next(tmp_path.glob(f'cct-*.{kind}')) for kind in ('pth', 'onnx'))
    assert published.stem == onnx.stem
    assert lines[0].startswith(f'{published}: 0.')
    assert lines[1].startswith(f'{onnx}: images of 40x48, logits equal to those of PyTorch (to ')
    assert re.match(r'masks of 3 images: at least [\d.]+ % of the pixels as by predict', lines[2])


# torch and this project are not there for the script
ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(('torch', 'mmengine', 'mmseg', 'mmcv', 'mmseg_cct'))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


def test_an_exported_file_predicts_without_torch_what_predict_does(cct, trained, tmp_path, capsys):
    """On images of several shapes, one of them turned by EXIF; nobody names a size."""
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    photos, rng = tmp_path / 'photos', np.random.default_rng(0)
    photos.mkdir()
    for index, size in enumerate(((40, 48), (75, 31), (20, 90), (60, 60))):
        pixels = rng.integers(0, 255, (*(-(-side // 10) for side in size), 3), dtype=np.uint8)
        turned = Image.Exif()
        turned[0x0112] = 6 if index == 1 else 1
        picture = Image.fromarray(pixels.repeat(10, 0).repeat(10, 1)[: size[0], : size[1]])
        picture.save(photos / f'{index}.jpg', exif=turned)
    capsys.readouterr()
    arguments = trained.checkpoint, tmp_path / 'cct.pth', '--onnx', '--images', photos
    cct.run('publish_model', *arguments)
    said = capsys.readouterr().out.splitlines()
    assert ': images of any size (32x32 in tests), logits equal to those of PyTorch' in said[1]
    assert said[2] == 'masks of 4 images: at least 100.0 % of the pixels as by predict'
    (file,) = tmp_path.glob('cct-*.onnx')
    out, script = tmp_path / 'out', cct.tools / 'predict_onnx.py'
    done = cct.shell('python', '-c', ALONE, script, file, photos, '--out', out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f'4 masks in {out}'
    cct.run('predict', trained.file, trained.checkpoint, photos, '--out', tmp_path / 'seen')
    for path in photos.iterdir():
        mask = Image.open(out / f'{path.stem}.png')
        expected = Image.open(tmp_path / 'seen/masks' / f'{path.stem}.png')
        assert (np.asarray(mask) == np.asarray(expected)).mean() > 0.999
        assert mask.getpalette() == expected.getpalette()
    (photos / 'br\x1b.png').write_bytes(b'no image')
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(photos / 'deep.tif')
    for name, why in (('br\x1b.png', 'cannot be read'), ('deep.tif', '1 channels of uint16; exp')):
        done = cct.shell('python', script, file, photos / name, '--out', out)
        said = f'{photos / name}: {why}'.replace('\x1b', r'\x1b')
        assert done.returncode == 1 and done.stderr.startswith(said)


def test_an_export_that_predicts_something_else_is_refused(trained, tmp_path, refused, monkeypatch):
    """Its logits are right, but the script would resize images in another way."""
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    real = export.metadata

    def wrong(*args, **kwargs):
        notes = real(*args, **kwargs)
        notes['way'] |= dict(scale=(9, 9), keep_ratio=False)
        return notes

    monkeypatch.setattr(export, 'metadata', wrong)
    said = refused('publish_model', trained.checkpoint, tmp_path / 'cct.pth', '--onnx')
    assert re.search(r'its masks of 3 images equal those of predict in [\d.]+ % of the pix', said)


def test_what_the_script_cannot_do_is_said_and_refused(cct, trained, tmp_path, capsys):
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    sliding, config = Config.fromfile(trained.file), tmp_path / 'sliding.py'
    sliding.model.test_cfg = dict(mode='slide', crop_size=(32, 32), stride=(16, 16))
    sliding.dump(config)
    arguments = trained.checkpoint, tmp_path / 'cct.pth', '--onnx', '--config', config
    cct.run('publish_model', *arguments)
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == "predict_onnx.py refuses it: model.test_cfg.mode: 'slide'"
    (file,) = tmp_path.glob('cct-*.onnx')
    done = cct.shell(
        'python', cct.tools / 'predict_onnx.py', file, cct.images, '--out', tmp_path / 'out'
    )
    assert done.returncode == 2
    assert done.stderr == (f"{file}: model.test_cfg.mode: 'slide': segment with tools/predict.py\n")


@pytest.mark.parametrize('imports', [['mmseg_cct'], ['mmseg_cct.plugin', 'my_net']])
def test_parts_of_the_users_own_need_the_config(trained, tmp_path, refused, imports):
    content = torch.load(trained.checkpoint, weights_only=False)
    config = Config.fromstring(content['meta']['cfg'], '.py')
    config.custom_imports.imports = imports
    config.model.backbone.type = 'MyNet'
    content['meta']['cfg'] = config.pretty_text
    torch.save(content, tmp_path / 'own.pth')
    said = refused('publish_model', tmp_path / 'own.pth', tmp_path / 'out.pth', '--onnx')
    line = said.splitlines()[-1]
    assert line.startswith("error: model.backbone.type: no 'MyNet'")
    hint = '; expected --config CONFIG, which imports my_net; a checkpoint may not'
    assert line.endswith(hint) == ('my_net' in imports) and len(imports) == 1 + (hint in line)


@pytest.mark.parametrize(
    ('change', 'expected'),
    [
        (dict(way=None), 'way is None'),
        (dict(way=[]), r'way is \[\]'),
        (dict(size='x'), 'size is x'),
        (dict(classes=['a', 'b']), 'palette is of 1 colours'),
        (dict(palette=[[1, 2, 300]]), r'palette is \[\[1, 2, 300\]\]'),
        (dict(way=dict(channels=[0])), 'cannot is missing'),
        (dict(way=dict(WAY, channels=[-1])), r'channels is \[-1\]'),
        (dict(way=dict(WAY, value_range=[2, 2])), r'value_range is \[2, 2\]'),
        (dict(way=dict(WAY, scale=[0, 3])), r'scale is \[0, 3\]'),
    ],
)
def test_a_note_of_another_kind_is_named(change, expected, project_root):
    read_notes = runpy.run_path(str(project_root / 'tools/predict_onnx.py'))['read_notes']

    def read(notes):
        stored = {key: json.dumps(value) for key, value in notes.items()}
        meta = SimpleNamespace(custom_metadata_map=stored)
        return read_notes(SimpleNamespace(get_modelmeta=lambda: meta))

    notes = dict(size=None, way=WAY, classes=['a'], palette=[[1, 2, 3]])
    assert read(notes) == notes
    with pytest.raises(ValueError, match=f'^its note {expected}'):
        read({**notes, **change})
