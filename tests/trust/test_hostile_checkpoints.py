"""A checkpoint is data: at no door of the tools does a hostile one run code.

Every kind of hostile content is in tests/engine/test_safe_loading.py.
"""

import shutil

import pytest
import tiny_weak
import torch
from world import MakesFolder

DOORS = (
    'train tiny.py --work-dir w --resume x.pth',
    'train tiny.py --work-dir w --cfg-options load_from=x.pth',
    'train tiny.py --work-dir w --cfg-options model.backbone.init_cfg.type=Pretrained '
    'model.backbone.init_cfg.checkpoint=x.pth',
    'test tiny.py x.pth --work-dir t',
    'predict tiny.py x.pth data/images --out out',
    'convert_checkpoint x.pth y.pth',
    'publish_model run/x.pth y.pth',
    'make_pseudo_labels weak/cam.py x.pth --out out --workers 0 --no-crf',
)
READERS = ('publish_model run/x.pth y.pth', 'train tiny.py --work-dir w --resume x.pth')


@pytest.fixture
def save(cct, trained):
    """Saves a checkpoint with more in it, beside the config and in a work directory."""
    (cct.folder / 'run').mkdir()
    shutil.copy(cct.file, cct.folder / 'run')
    content = trained.load(trained.checkpoint)

    def write(meta=(), **more):
        changed = {**content, 'meta': {**content['meta'], **dict(meta)}, **more}
        torch.save(changed, 'x.pth')
        torch.save(changed, 'run/x.pth')
        (cct.folder / 'run/last_checkpoint').write_text('run/x.pth')

    return write


@pytest.mark.parametrize('door', DOORS)
def test_nothing_runs(door, cct, save, capfd):
    if 'weak' in door:
        pytest.importorskip('mmpretrain', reason='the classifier is made of its parts')
        tiny_weak.make_weak(cct.folder / 'weak')
    save(zzz=[dict(deep=MakesFolder())])
    assert cct.tool(*door.split()) != 0
    out, err = capfd.readouterr()
    assert not (cct.folder / 'ran').exists()
    assert 'Traceback' not in out + err
    (line,) = [line for line in err.splitlines() if line.startswith('error: ')]
    assert 'x.pth: refused' in line
    assert not (cct.folder / 'y.pth').exists() and not (cct.folder / 'w/iter_2.pth').exists()


@pytest.mark.parametrize('reader', READERS)
def test_the_text_of_the_config_in_it_is_no_code(reader, cct, save, monkeypatch):
    monkeypatch.syspath_prepend(cct.folder)
    (cct.folder / 'evil.py').write_text("open('ran', 'w')")
    imports = "custom_imports = dict(imports=['evil'])\nopen('ran', 'w')\n"
    save(meta=dict(cfg=imports + cct.file.read_text()))
    cct.tool(*reader.split())
    assert not (cct.folder / 'ran').exists()
