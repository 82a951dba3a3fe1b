"""A checkpoint is data: at no door of the tools does a hostile one run code.

Every kind of hostile content is in tests/engine/test_safe_loading.py and test_foreign_config.py.
"""

import pickle
import shutil

import pytest
import tiny_weak
import torch
from world import MakesFolder

from mmseg_cct.config.text import read_config_text

DOORS = (
    'train tiny.py --work-dir w --resume x.pth',
    'train tiny.py --work-dir w --cfg-options load_from=x.pth',
    'train tiny.py --work-dir w --cfg-options model.backbone.init_cfg.type=Pretrained '
    'model.backbone.init_cfg.checkpoint=x.pth',
    'test tiny.py x.pth --work-dir t',
    'predict tiny.py x.pth data/images --out out',
    'convert_checkpoint x.pth y.pth',
    'publish_model x.pth y.pth',
    'next_batch x.pth --out out',
    'analyze_clusters tiny.py x.pth --out out',
    'report run=trained --out out',
    'make_pseudo_labels weak/cam.py x.pth --out out --workers 0 --no-crf',
)
READERS = (
    'publish_model x.pth y.pth',
    'publish_model x.pth y.pth --onnx',
    'report run=trained --out out',
    'next_batch x.pth --images data/images -n 1 --out out',
)


@pytest.fixture
def inputs(cct, trained, monkeypatch):
    """The tiny config, the content of a checkpoint, and a folder of the run that wrote it."""
    monkeypatch.syspath_prepend(cct.folder)
    (cct.folder / 'trained').mkdir()
    shutil.copy(cct.file, cct.folder / 'trained')
    (cct.folder / 'trained/last_checkpoint').write_text('x.pth')
    cct.content = trained.load(trained.checkpoint)
    return cct


def change_config(inputs, changes):
    """Saves checkpoints whose config is changed."""
    config = read_config_text(inputs.content['meta']['cfg'], 'x.pth')
    config.merge_from_dict(changes)
    inputs.content['meta']['cfg'] = config.pretty_text
    for path in ('x.pth', 'trained/x.pth'):
        torch.save(inputs.content, path)
    return config


@pytest.mark.parametrize('door', DOORS)
def test_nothing_runs(door, inputs, capfd):
    if 'weak' in door:
        pytest.importorskip('mmpretrain', reason='the classifier is made of its parts')
        tiny_weak.make_weak(inputs.folder / 'weak')
    torch.save({**inputs.content, 'zzz': [dict(deep=MakesFolder())]}, 'x.pth')
    assert inputs.tool(*door.split()) != 0
    out, err = capfd.readouterr()
    assert not (inputs.folder / 'ran').exists()
    assert 'Traceback' not in out + err
    (line,) = [line for line in err.splitlines() if line.startswith('error: ')]
    assert 'x.pth: refused: it names ' in line
    assert not (inputs.folder / 'y.pth').exists() and not (inputs.folder / 'w/iter_2.pth').exists()


def test_nothing_runs_at_an_automatic_resume(inputs, capfd):
    (inputs.folder / 'w').mkdir()
    (inputs.folder / 'w/last_checkpoint').write_text('iter_2.pth')
    torch.save({**inputs.content, 'zzz': MakesFolder()}, 'w/iter_2.pth')
    options = '--resume', '--cfg-options', 'train_cfg.max_iters=1'
    inputs.tool('train', 'tiny.py', '--work-dir', 'w', *options)
    assert not (inputs.folder / 'ran').exists()
    assert 'Traceback' not in ''.join(capfd.readouterr())


@pytest.mark.parametrize('reader', READERS)
@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('model.type', 'evil.Net'),
        ('model.decode_head.loss_decode', dict(type='CrossEntropyLoss', class_weight='x.pkl')),
    ],
)
def test_nothing_in_the_config_runs(key, value, reader, inputs, capfd):
    (inputs.folder / 'evil').mkdir()
    (inputs.folder / 'evil/__init__.py').write_text("open('ran', 'w')")
    (inputs.folder / 'evil/registry.py').touch()
    (inputs.folder / 'x.pkl').write_bytes(pickle.dumps(MakesFolder()))
    change_config(inputs, {key: value})
    assert inputs.tool(*reader.split()) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith('error: ') and 'x.pth: its config has ' in line
    assert ', which may run code' in line
    assert not (inputs.folder / 'ran').exists() and not list(inputs.folder.glob('y*'))


def test_report_imports_what_the_folder_was_trained_with_alone(inputs, capfd):
    (inputs.folder / 'evil.py').write_text("open('ran', 'w')")
    config = change_config(
        inputs, {'custom_imports.imports': ['mmseg_cct.plugin', 'evil'], 'test_dataloader': None}
    )
    for was_dumped in (False, True):
        if was_dumped:
            config.dump('trained/dumped.py')
        assert inputs.tool('report', 'run=trained', '--out', 'out') == 2
        assert 'its config has no test_dataloader' in capfd.readouterr().err
        assert (inputs.folder / 'ran').exists() == was_dumped


def test_report_imports_nothing_from_the_folder_of_the_run(inputs, capfd):
    (inputs.folder / 'trained/evil.py').write_text("open('ran', 'w')")
    config = change_config(inputs, {'custom_imports.imports': ['mmseg_cct.plugin', 'trained.evil']})
    config.dump('trained/dumped.py')
    assert inputs.tool('report', 'run=trained', '--out', 'out') == 2
    assert 'custom_imports: trained.evil lies in trained' in capfd.readouterr().err
    assert not (inputs.folder / 'ran').exists()
