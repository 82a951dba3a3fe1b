"""What all tests share: MMSeg's registry scope, one thread, the root of real data."""

import copy
import gc
import os
import sys

os.environ['TORCHDYNAMO_DISABLE'] = '1'  # before torch is imported: no test compiles
# Tests compare trainings to rounding, fork and start two ranks: everywhere they run on the CPU.
if not os.environ.get('MMSEG_CCT_TEST_GPU'):
    os.environ['CUDA_VISIBLE_DEVICES'] = ''

from pathlib import Path
from tempfile import TemporaryFile

import pytest
import torch

# Its first import writes a file that is empty for a moment. Here that is over before workers start.
import yapf.yapflib.yapf_api  # noqa: F401
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmengine.runner.checkpoint import CheckpointLoader

import mmseg_cct.plugin  # noqa: F401 (registers the components)

PROJECT = Path(__file__).parents[1]


def read_shipped_configs_once():
    """Keeps what mmengine reads of the project's configs: a leaf has six bases."""
    read, known = Config._file2dict, {}

    def read_once(filename, *args, **kwargs):
        key = os.path.abspath(filename), args, tuple(kwargs.items())
        if PROJECT / 'configs' not in Path(key[0]).parents:
            return read(filename, *args, **kwargs)
        if key not in known:
            known[key] = read(filename, *args, **kwargs)
        return copy.deepcopy(known[key])

    Config._file2dict = staticmethod(read_once)


read_shipped_configs_once()


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


def pytest_collection_modifyitems(items):
    """Marks what is slow or reads real data by its fixtures; skips what wants a GPU."""
    for item in items:
        if 'slow' in item.fixturenames:
            item.add_marker('slow')
        if 'camvid_root' in item.fixturenames:
            item.add_marker('real_data')
        if item.get_closest_marker('gpu') and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip('needs a GPU: MMSEG_CCT_TEST_GPU=1 pytest -m gpu'))


@pytest.fixture(scope='session')
def slow():
    """Requested by fixtures that train, start processes or step whole models: marks their tests."""


@pytest.fixture(scope='session', autouse=True)
def _process():
    # The first backward starts a thread for each GPU, and a fork of a process with such threads
    # cannot train. There is none yet; later, a test has put up a fake one.
    torch.zeros(1, requires_grad=True).sum().backward()
    # With many threads on a busy machine, tiny tensors take ten times as long.
    torch.set_num_threads(1)
    # Data sets collect garbage when they pack their lists: half a second each over all imports.
    gc.freeze()


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
    # captured, and closed by the time of a later test, whose first line is then a traceback. A log
    # file left open is a warning in whichever test collects it.
    before = set(MMLogger._instance_dict)
    yield
    for name in set(MMLogger._instance_dict) - before:
        for handler in MMLogger._instance_dict.pop(name).handlers:
            handler.close()


@pytest.fixture
def compiling(monkeypatch):
    """Lets torch compile, which the other tests do not."""
    monkeypatch.delenv('TORCHDYNAMO_DISABLE')
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def messages(monkeypatch):
    """What the package logs; mmengine's loggers do not reach caplog."""
    lines = []
    for name, module in list(sys.modules.items()):
        if name.startswith('mmseg_cct.') and hasattr(module, 'print_log'):
            monkeypatch.setattr(module, 'print_log', lambda line, **_: lines.append(line))
    return lines


@pytest.fixture(scope='session')
def project_root():
    return PROJECT


@pytest.fixture
def installed(project_root):
    """mmengine finds `mmseg_cct::...` in an installed package, not in a clone on PYTHONPATH."""
    if not (project_root / 'mmseg_cct' / '.mim' / 'model-index.yml').is_file():
        pytest.skip('not installed: run pip install -e .')


@pytest.fixture(scope='session')
def camvid_root(request):
    root = Path(request.config.getoption('--data-root')) / 'camvid'
    if not root.is_dir():
        pytest.skip(f'CamVid is not at {root} (link it as data/camvid, or pass --data-root=DIR)')
    return root


@pytest.fixture
def cct(tmp_path, monkeypatch):
    """A fresh config and data in a folder of its own, which is the working directory."""
    import world

    monkeypatch.chdir(tmp_path)
    return world.Run(tmp_path)


@pytest.fixture(scope='session')
def trained(slow, tmp_path_factory):
    """The tiny config after an uninterrupted training; tests read it and write elsewhere."""
    import world

    init_default_scope('mmseg')
    return world.Run(tmp_path_factory.mktemp('trained')).trained()


@pytest.fixture
def refused(capsys):
    """Runs a tool, which ends with exit code 2, and gives what it says of it."""
    import world

    def run(*command):
        with pytest.raises(SystemExit, match='2'):
            world.run_tool(*command)
        return capsys.readouterr().err

    return run


@pytest.fixture
def checkpoints_read(monkeypatch):
    """Names of the checkpoints that are read, each as often as it is."""
    names, load = [], CheckpointLoader.load_checkpoint
    monkeypatch.setattr(
        CheckpointLoader,
        'load_checkpoint',
        lambda name, *args, **kwargs: names.append(name) or load(name, *args, **kwargs),
    )
    return names
