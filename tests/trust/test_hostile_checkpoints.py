"""A checkpoint is data: at no door of the tools does a hostile one run code."""

import os
import pickle
import shutil
from types import SimpleNamespace

import pytest
import tiny_weak
import torch

from mmseg_cct.engine.foreign_config import read_config_text


class MakesFolder:
    """Pickles as a call that leaves a folder behind."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def save(content, folder, path):
    """A checkpoint that would make a folder; tests/engine/test_safe_loading.py has more kinds."""
    content['zzz'] = [dict(deep=MakesFolder(folder))]
    torch.save(content, path)


OUT = ('--out', 'out')
DOORS = {
    'resume FILE': lambda i: i.tool('train', 'tiny.py', '--work-dir', 'w', '--resume', 'x.pth'),
    'load_from': lambda i: i.tool(
        'train', 'tiny.py', '--work-dir', 'w', '--cfg-options', 'load_from=x.pth'
    ),
    'init_cfg': lambda i: i.tool(
        'train', 'tiny.py', '--work-dir', 'w', '--cfg-options',
        'model.backbone.init_cfg.type=Pretrained', 'model.backbone.init_cfg.checkpoint=x.pth',
    ),
    'test': lambda i: i.tool('test', 'tiny.py', 'x.pth', '--work-dir', 't'),
    'predict': lambda i: i.tool('predict', 'tiny.py', 'x.pth', 'data/images', *OUT),
    'convert': lambda i: i.tool('convert_checkpoint', 'x.pth', 'y.pth'),
    'publish': lambda i: i.tool('publish_model', 'x.pth', 'y.pth'),
    'next batch': lambda i: i.tool('next_batch', 'x.pth', *OUT),
    'clusters': lambda i: i.tool('analyze_clusters', 'tiny.py', 'x.pth', *OUT),
    'report': lambda i: i.tool('report', 'run=trained', *OUT),
}  # fmt: skip


@pytest.fixture
def inputs(cct, trained):
    (cct.folder / 'trained').mkdir()
    shutil.copy(cct.file, cct.folder / 'trained')
    (cct.folder / 'trained/last_checkpoint').write_text('x.pth')
    return SimpleNamespace(
        tool=cct.tool, folder=cct.folder, content=trained.load(trained.checkpoint)
    )


@pytest.mark.parametrize('door', DOORS)
def test_nothing_runs(door, inputs, capfd):
    save(inputs.content, inputs.folder / 'ran', inputs.folder / 'x.pth')
    assert DOORS[door](inputs) != 0
    out, err = capfd.readouterr()
    assert not (inputs.folder / 'ran').exists()
    assert 'Traceback' not in out + err
    (line,) = [line for line in err.splitlines() if line.startswith('error: ')]
    assert 'x.pth: refused: it names ' in line
    assert not (inputs.folder / 'y.pth').exists() and not (inputs.folder / 'w/iter_2.pth').exists()


def test_nothing_runs_at_an_automatic_resume(inputs, capfd):
    (inputs.folder / 'w').mkdir()
    (inputs.folder / 'w/last_checkpoint').write_text('iter_2.pth')
    save(inputs.content, inputs.folder / 'ran', inputs.folder / 'w/iter_2.pth')
    inputs.tool(
        'train', 'tiny.py', '--work-dir', 'w', '--resume', '--cfg-options', 'train_cfg.max_iters=1'
    )
    assert not (inputs.folder / 'ran').exists()
    assert 'Traceback' not in ''.join(capfd.readouterr())


def test_nothing_runs_in_a_classifier(cct, capfd):
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    weak = tiny_weak.make_weak(cct.folder)
    content = torch.load(weak.checkpoint)
    save(content, cct.folder / 'ran', cct.folder / 'x.pth')
    assert cct.tool('make_pseudo_labels', weak.config, 'x.pth', *OUT, '--workers', 0, '--no-crf')
    assert not (cct.folder / 'ran').exists()
    (line,) = [line for line in capfd.readouterr().err.splitlines() if 'error: ' in line]
    assert 'x.pth: ' in line


def test_publishing_does_not_run_the_config(inputs, capfd):
    inputs.content['meta']['cfg'] += "\na = __import__('os').mkdir('ran')\n"
    torch.save(inputs.content, 'x.pth')
    assert inputs.tool('publish_model', 'x.pth', 'y.pth') == 2
    assert not (inputs.folder / 'ran').exists()
    assert 'x.pth: its config is not a list of plain settings' in capfd.readouterr().err
    assert inputs.tool('publish_model', 'x.pth', 'y.pth', '--config', 'tiny.py') == 0
    assert not (inputs.folder / 'ran').exists()


RUNS = dict(type='subprocess.Popen', args=['touch', 'ran'])
NAMES = {
    'model': dict(model=dict(type='evil.Net')),
    'default_scope': dict(default_scope='evil'),
    'test set': dict(test_dataloader=dict(dataset=RUNS)),
}
READERS = {
    **{f'publish {kind}': ('publish_model', 'x.pth', 'y.pth', *kind) for kind in ((), ('--onnx',))},
    'report': ('report', 'run=trained', *OUT),
}


@pytest.mark.parametrize('reader', READERS)
@pytest.mark.parametrize('change', NAMES)
def test_no_name_in_the_config_runs(change, reader, inputs, capfd, monkeypatch):
    (inputs.folder / 'evil').mkdir()
    (inputs.folder / 'evil/__init__.py').write_text("open('ran', 'w')")
    (inputs.folder / 'evil/registry.py').touch()
    monkeypatch.syspath_prepend(inputs.folder)
    config = read_config_text(inputs.content['meta']['cfg'], 'x.pth')
    config.merge_from_dict(NAMES[change])
    inputs.content['meta']['cfg'] = config.pretty_text
    torch.save(inputs.content, 'x.pth')
    shutil.copy('x.pth', 'trained')
    tool, *arguments = READERS[reader]
    assert inputs.tool(tool, *arguments) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith('error: ') and 'x.pth: its config has ' in line
    assert 'which may run code; expected a registered name' in line
    assert not (inputs.folder / 'ran').exists() and not list(inputs.folder.glob('y*'))


def test_report_imports_what_the_folder_was_trained_with_alone(inputs, capfd, monkeypatch):
    (inputs.folder / 'evil.py').write_text("open('ran', 'w')")
    monkeypatch.syspath_prepend(inputs.folder)
    config = read_config_text(inputs.content['meta']['cfg'], 'x.pth')
    config.custom_imports.imports.append('evil')
    config.pop('test_dataloader')
    inputs.content['meta']['cfg'] = config.pretty_text
    torch.save(inputs.content, 'trained/x.pth')
    for was_dumped in (False, True):
        if was_dumped:
            config.dump('trained/dumped.py')
        assert inputs.tool('report', 'run=trained', *OUT) == 2
        assert 'its config has no test_dataloader' in capfd.readouterr().err
        assert (inputs.folder / 'ran').exists() == was_dumped


def test_report_imports_nothing_from_the_folder_of_the_run(inputs, capfd, monkeypatch):
    (inputs.folder / 'trained/evil.py').write_text("open('ran', 'w')")
    monkeypatch.syspath_prepend(inputs.folder)
    config = read_config_text(inputs.content['meta']['cfg'], 'x.pth')
    config.custom_imports.imports.append('trained.evil')
    config.dump('trained/dumped.py')
    inputs.content['meta']['cfg'] = config.pretty_text
    torch.save(inputs.content, 'trained/x.pth')
    assert inputs.tool('report', 'run=trained', *OUT) == 2
    assert 'custom_imports: trained.evil lies in trained' in capfd.readouterr().err
    assert not (inputs.folder / 'ran').exists()


def test_no_argument_in_the_config_runs(inputs, capfd):
    (inputs.folder / 'x.pkl').write_bytes(pickle.dumps(MakesFolder(inputs.folder / 'ran')))
    config = read_config_text(inputs.content['meta']['cfg'], 'x.pth')
    loss = dict(type='CrossEntropyLoss', class_weight='x.pkl')
    config.merge_from_dict({'model.decode_head.loss_decode': loss})
    inputs.content['meta']['cfg'] = config.pretty_text
    torch.save(inputs.content, 'trained/x.pth')
    for tool, *arguments in (
        ('report', 'run=trained', *OUT),
        ('publish_model', 'trained/x.pth', 'y.pth', '--onnx'),
        ('next_batch', 'trained', '--images', 'data/images', '-n', 1, *OUT),
    ):
        assert inputs.tool(tool, *arguments) == 2
        assert "class_weight='x.pkl', which may run code" in capfd.readouterr().err
        assert not (inputs.folder / 'ran').exists()
