"""MMSegmentation's own tools, unchanged, on a config of this package: the plugin is no dialect."""

import json
import runpy
import sys
from pathlib import Path

import mmseg
import numpy as np
import pytest
import world
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmengine.visualization import Visualizer
from mmseg.visualization import SegLocalVisualizer
from PIL import Image

from mmseg_cct.errors import UserError

pytestmark = pytest.mark.slow

TOOLS = Path(mmseg.__file__).parent / '.mim' / 'tools'
SETTINGS = {
    'train_cfg.max_iters': 4,
    'train_cfg.val_interval': 4,
    'param_scheduler.end': 4,
    'default_hooks.checkpoint.interval': 2,
    'default_hooks.logger.interval': 1,
    'train_dataloader.batch_size': 2,
    'train_dataloader.dataset.labeled.count': 3,
    'train_dataloader.dataset.unlabeled.count': 4,
    'val_dataloader.dataset.count': 2,
    'test_dataloader.dataset.count': 2,
    'log_level': 'INFO',
} | {
    f'{split}_dataloader.{key}': value
    for split in ('train', 'val', 'test')
    for key, value in (('num_workers', 0), ('persistent_workers', False))
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory, project_root):
    """The demo as `Config.fromfile` reads the shipped file, and tiny."""
    folder = tmp_path_factory.mktemp('mmseg_tools')
    config = Config.fromfile(project_root / 'configs' / 'demo' / 'cct_shapes.py')
    config.merge_from_dict(SETTINGS)
    config.dump(folder / 'demo.py')
    return folder


@pytest.fixture
def mmseg_tool(folder, monkeypatch):
    """Runs a file of the installed MMSegmentation as a script, in the folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv('MPLBACKEND', 'Agg')

    def run(name, *args, options=()):
        if name in ('train', 'test'):
            options = [*options, f'experiment_name={world.experiment()}']
        args = [*args, *(['--cfg-options', *options] if options else [])]
        path = str(TOOLS / f'{name}.py')
        monkeypatch.setattr(sys, 'argv', [path, *map(str, args)])
        forget()
        runpy.run_path(path, run_name='__main__')

    def forget():  # as each process begins and ends
        for kind in (DefaultScope, Visualizer, SegLocalVisualizer):
            kind._instance_dict.clear()

    yield run
    forget()


def log_of(work_dir):
    """The log of the last run in a work directory."""
    return max(Path(work_dir).glob('*/*.log')).read_text()


@pytest.fixture
def trained(folder, mmseg_tool, project_root):
    """A training of a shipped file by MMSegmentation's train.py, once for all tests."""
    if not (folder / 'work').exists():
        shipped = project_root / 'configs' / 'demo' / 'cct_shapes.py'
        settings = [f'{key}={value}' for key, value in SETTINGS.items()]
        mmseg_tool('train', shipped, '--work-dir', 'work', options=settings)
    return folder / 'work' / 'iter_4.pth'


def test_train_is_protected_and_tells_what_it_found(trained, folder):
    log = log_of(folder / 'work')
    assert 'Training on 3 labelled and 4 unlabelled images, 7 classes' in log
    assert 'Model: CCTSegmentor and ResNetV1c and PixelShuffleHead' in log
    assert 'classes at IoU 0, ' in log
    assert {path.name for path in trained.parent.glob('*.pth')} == {'iter_2.pth', 'iter_4.pth'}


def test_resume_goes_on_from_the_newest_whole_checkpoint(trained, folder, mmseg_tool):
    work = folder / 'resumed'
    work.mkdir()
    (work / 'iter_4.pth').write_bytes(trained.read_bytes())
    (work / 'iter_6.pth').write_bytes(trained.read_bytes()[:-30])
    (work / 'last_checkpoint').write_text('iter_6.pth')
    mmseg_tool(
        'train', 'demo.py', '--work-dir', work, '--resume', options=['train_cfg.max_iters=8']
    )
    log = log_of(work)
    assert 'iter_6.pth: damaged' in log and 'resumed epoch: 0, iter: 4' in log
    assert (work / 'iter_8.pth').is_file()


def test_masks_of_unknown_quality_are_learned_by_the_config_of_their_page(
    folder, mmseg_tool, project_root
):
    page = (project_root / 'docs' / 'weak_labels.md').read_text(encoding='utf-8')
    code = page.partition('with_masks.py"\n')[2].partition('```')[0]
    world.write_images(folder / 'data')
    for path in (folder / 'data' / 'masks').glob('*.png'):
        mask = np.array(Image.open(path))
        mask[::4][mask[::4] == 1] = 2  # a quarter of class 1
        for name in (path.name, path.name.replace('l', 'u')):
            (folder / 'sam' / 'masks').mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask).save(folder / 'sam' / 'masks' / name)
    config = world.cct_config(folder / 'data')
    config.log_level = 'INFO'
    config.dump(folder / 'cct-strong_mbv2_mine.py')
    (folder / 'with_masks.py').write_text(code)
    mmseg_tool('train', 'with_masks.py', '--work-dir', 'weak')
    log = log_of(folder / 'weak')
    assert 'weak masks: 3 of 5 unlabelled images' in log
    assert 'weak masks: ground: 100 % right on 3 masks, at most 100 %, kept' in log
    assert 'aux.weak_ce: ' in log and (folder / 'weak' / 'iter_6.pth').is_file()


def test_test_scores_paints_and_writes(trained, folder, mmseg_tool):
    mmseg_tool(
        *('test', 'demo.py', trained, '--work-dir', 'tested'),
        *('--out', 'predicted', '--show-dir', 'painted'),
    )
    (metrics,) = folder.glob('tested/*/*.json')
    assert 0 <= json.loads(metrics.read_text())['mIoU'] <= 100
    written = sorted(folder.glob('predicted/*.png'))
    assert len(written) == 2 and np.array(Image.open(written[0])).max() < 7
    assert len(list(folder.glob('painted/**/*.png'))) == 2
    mmseg_tool('analysis_tools/confusion_matrix', 'demo.py', 'predicted', 'matrix')
    assert (folder / 'matrix' / 'confusion_matrix.png').is_file()
    with pytest.raises(UserError, match='does not fit the config in'):
        mmseg_tool('test', 'demo.py', trained, options=['model.backbone.base_channels=8'])


def test_browsers_show_labelled_and_unlabelled_images(folder, mmseg_tool):
    mmseg_tool('analysis_tools/browse_dataset', 'demo.py', '--not-show', '--output-dir', 'seen')
    assert len(list(folder.glob('seen/*.png'))) == 7
    mmseg_tool('misc/browse_dataset', 'demo.py', '--not-show', '--output-dir', 'also_seen')
    assert len(list(folder.glob('also_seen/**/*.png'))) == 7
