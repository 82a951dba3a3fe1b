"""What all tests share: MMSeg's registry scope, one thread, the root of real data."""

import gc
import os

os.environ['TORCHDYNAMO_DISABLE'] = '1'  # before torch is imported: no test compiles
# Tests compare trainings to rounding, fork and start two ranks: everywhere they run on the CPU.
if not os.environ.get('MMSEG_CCT_TEST_GPU'):
    os.environ['CUDA_VISIBLE_DEVICES'] = ''

from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace

import numpy as np
import pytest
import torch

# Its first import writes a file that is empty for a moment. Here that is over before workers start.
import yapf.yapflib.yapf_api  # noqa: F401
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from PIL import Image

import mmseg_cct.plugin  # noqa: F401 (registers the components)

PROJECT = Path(__file__).parents[1]


def pytest_addoption(parser):
    parser.addoption('--fuzz-seconds', type=float, default=10.0, help='how long tests/trust fuzzes')
    parser.addoption('--fuzz-seed', type=int, default=0, help='where it begins')
    parser.addoption(
        '--data-root',
        default=os.environ.get('MMSEG_CCT_DATA_ROOT', str(PROJECT / 'data')),
        help='folder with real data sets (camvid, ...); tests on absent data are skipped',
    )
    parser.addoption(
        '--reference',
        default=os.environ.get('MMSEG_CCT_REFERENCE'),
        help="clone of the authors' public code (github.com/yassouali/CCT, commit 65d4e5b); tests "
        'that run it are skipped without one',
    )


SLOW_FOLDERS = {'trust', 'tools', 'benchmarks', 'docs', 'examples'}
SLOW_FIXTURES = {'tiny_cct', 'trained', 'whole', 'with_hook'}  # they train


def pytest_collection_modifyitems(items):
    """Marks what is slow or reads real data, by folder and fixtures; skips what wants a GPU."""
    for item in items:
        folder = item.path.relative_to(PROJECT / 'tests').parts[0]
        if folder in SLOW_FOLDERS or SLOW_FIXTURES & set(item.fixturenames):
            item.add_marker('slow')
        if 'camvid_root' in item.fixturenames:
            item.add_marker('real_data')
        if item.get_closest_marker('gpu') and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip('needs a GPU: MMSEG_CCT_TEST_GPU=1 pytest -m gpu'))


@pytest.fixture(scope='session', autouse=True)
def _one_thread():
    # With many threads on a busy machine, tiny tensors take ten times as long.
    torch.set_num_threads(1)


@pytest.fixture(scope='session', autouse=True)
def _kernels_are_kept_somewhere(tmp_path_factory):
    # A home directory that cannot be written has no place for libraries: they would not be built.
    folder = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'mmseg_cct'
    with pytest.MonkeyPatch.context() as patch:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except OSError:
            patch.setenv('XDG_CACHE_HOME', str(tmp_path_factory.mktemp('cache')))
        yield


@pytest.fixture(scope='session', autouse=True)
def _imports_are_not_collected():
    # Data sets collect garbage when they pack their lists: half a second each over all imports.
    gc.freeze()


@pytest.fixture(scope='session', autouse=True)
def _configs_are_not_beautified():
    # yapf takes a second for each config that a runner or a checkpoint writes.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('yapf.yapflib.yapf_api.FormatCode', lambda text, **_: (text, True))
        yield


@pytest.fixture(autouse=True)
def _mmseg_scope():
    init_default_scope('mmseg')


@pytest.fixture(autouse=True)
def _loggers_end_with_their_test():
    # What mmengine calls the current logger writes to the standard output of the test that made it:
    # captured, and closed by the time of a later test, whose first line is then a traceback.
    before = set(MMLogger._instance_dict)
    yield
    for name in set(MMLogger._instance_dict) - before:
        del MMLogger._instance_dict[name]


@pytest.fixture(scope='session')
def project_root():
    return PROJECT


@pytest.fixture(scope='session')
def camvid_root(request):
    root = Path(request.config.getoption('--data-root')) / 'camvid'
    if not root.is_dir():
        pytest.skip(f'CamVid is not at {root} (link it as data/camvid, or pass --data-root=DIR)')
    return root


@pytest.fixture(scope='session')
def tiny_cct(tmp_path_factory):
    """A CCT model of a few thousand parameters: its config, and a checkpoint of two iterations."""
    import tiny

    folder = tmp_path_factory.mktemp('tiny_cct')
    rng = np.random.default_rng(0)
    for index in range(4):
        for kind, pixels in (
            ('images', rng.integers(0, 256, (40, 56, 3), np.uint8)),
            ('masks', rng.integers(0, 3, (40, 56), np.uint8)),
        ):
            (folder / kind).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(folder / kind / f'{index}.png')
    load, annotate = dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')
    crop = [dict(type='RandomCrop', crop_size=(32, 32)), dict(type='PackSegInputs')]
    images = dict(
        type='FolderDataset',
        data_root=str(folder),
        image_dir='images',
        classes=('sky', 'road', 'car'),
        palette=[[10, 20, 30], [200, 0, 0], [0, 200, 0]],
    )
    labeled = dict(images, mask_dir='masks', pipeline=[load, annotate, *crop])
    test_pipeline = [load, annotate, dict(type='PackSegInputs')]
    evaluated = dict(
        batch_size=1,
        num_workers=0,
        sampler=dict(type='DefaultSampler'),
        dataset=dict(labeled, pipeline=test_pipeline),
    )
    config = Config(
        dict(
            default_scope='mmseg',
            custom_imports=dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False),
            model=tiny.model_config().to_dict(),
            test_pipeline=test_pipeline,
            train_dataloader=dict(
                batch_size=2,
                num_workers=0,
                sampler=dict(type='PairSampler', shuffle=True),
                dataset=dict(
                    type='SemiSegDataset',
                    labeled=labeled,
                    unlabeled=dict(images, pipeline=[load, *crop]),
                ),
            ),
            test_dataloader=evaluated,
            test_evaluator=dict(type='IoUMetric'),
            test_cfg=dict(type='TestLoop'),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=2),
            optim_wrapper=dict(
                type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9)
            ),
            param_scheduler=dict(type='PolyLR', power=0.9, begin=0, end=2, by_epoch=False),
            default_hooks=dict(checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2)),
            custom_hooks=[dict(type='EMAHook')],
            visualizer=dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
            randomness=dict(seed=0),
            log_level='WARNING',
            work_dir=str(folder / 'work'),
            experiment_name='tiny_cct',
        )
    )
    config.dump(folder / 'tiny_cct.py')
    init_default_scope('mmseg')
    Runner.from_cfg(Config.fromfile(folder / 'tiny_cct.py')).train()
    return SimpleNamespace(
        folder=folder,
        config=str(folder / 'tiny_cct.py'),
        images=str(folder / 'images'),
        checkpoint=str(folder / 'work' / 'iter_2.pth'),
    )
