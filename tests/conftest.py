"""What all tests share: MMSeg's registry scope, one thread, the root of real data."""

import os

os.environ['TORCHDYNAMO_DISABLE'] = '1'  # before torch is imported: no test compiles

from pathlib import Path

import pytest
import torch
from mmengine.registry import init_default_scope

PROJECT = Path(__file__).parents[1]


def pytest_addoption(parser):
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


@pytest.fixture(scope='session', autouse=True)
def _one_thread():
    # With many threads on a busy machine, tiny tensors take ten times as long.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _mmseg_scope():
    init_default_scope('mmseg')


@pytest.fixture(scope='session')
def project_root():
    return PROJECT


@pytest.fixture(scope='session')
def camvid_root(request):
    root = Path(request.config.getoption('--data-root')) / 'camvid'
    if not root.is_dir():
        pytest.skip(f'CamVid is not at {root} (link it as data/camvid, or pass --data-root DIR)')
    return root
