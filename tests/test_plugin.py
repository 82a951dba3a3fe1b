import subprocess
import sys

import pytest

# What a plugin has no business with. All that the plugin needs is imported before it, so that the
# difference is its own.
HOST = """
import os, signal, sys, warnings
from multiprocessing.queues import Queue
import matplotlib.pyplot, mmseg.apis, torch.utils.tensorboard, yapf.yapflib.yapf_api
from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from mmengine.visualization import LocalVisBackend
from PIL import EpsImagePlugin, Image
from mmseg.registry import MODELS
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

def state():
    return dict(
        environment=dict(os.environ), filters=list(warnings.filters), path=list(sys.path),
        hook=sys.excepthook, signals=[signal.getsignal(each) for each in (2, 15)],
        largest=Image.MAX_IMAGE_PIXELS, ghostscript=EpsImagePlugin.gs_binary,
        dump=Config.dump, queue=Queue._on_queue_feeder_error,
        loading=_MultiProcessingDataLoaderIter.__del__, picture=LocalVisBackend.add_image,
        threads=torch.get_num_threads(), precision=torch.get_float32_matmul_precision(),
        styles=dict(matplotlib.rcParams),
    )

before, schemes = state(), dict(CheckpointLoader._schemes)
import mmseg_cct.plugin
after = state()
print([name for name in before if before[name] != after[name]])
assert CheckpointLoader._schemes != schemes and 'CCTSegmentor' in MODELS
"""


@pytest.mark.slow
def test_the_import_changes_nothing_in_its_host_but_registries_and_the_loader():
    done = subprocess.run([sys.executable, '-c', HOST], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '[]'


@pytest.mark.slow
def test_importing_the_package_changes_nothing():
    code = (
        'import sys, warnings; before = list(warnings.filters)\n'
        'import mmseg_cct; print(mmseg_cct.__version__)\n'
        'assert warnings.filters == before\n'
        'own = {name for name in sys.modules if name.startswith("mm")}\n'
        'assert own == {"mmseg_cct", "mmseg_cct.version"}, own\n'
        'assert not {"torch", "numpy"} & set(sys.modules)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


# Windows and macOS lack what only Linux or Unix has, so nothing needs it before it is used.
# Other packages find out by themselves what there is, so they are imported first.
IMPORT_ALL = """
import importlib.util, multiprocessing, os, pkgutil, signal, socket, subprocess, sys
import filelock, matplotlib.pyplot, mmcv, mmengine.runner, mmseg.apis, scipy.stats, tensorboard
import mmpretrain.models, mmseg.datasets, mmseg.evaluation, mmseg.models, tqdm
import torch.distributed.elastic.multiprocessing, torch.utils.tensorboard, yapf.yapflib.yapf_api

for name in ('fcntl', 'grp', 'pwd', 'resource', 'termios'):
    sys.modules[name] = None
unix = 'fork forkpty geteuid getloadavg getpgid getuid killpg mkfifo sched_getaffinity setsid uname'
for name in unix.split():
    if hasattr(os, name):
        delattr(os, name)
for name in ('SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGUSR1'):
    delattr(signal, name)
import mmseg_cct

left_out = ['__main__'] + ['triton_chain'] * (importlib.util.find_spec('triton') is None)
for module in pkgutil.walk_packages(mmseg_cct.__path__, 'mmseg_cct.'):
    if module.name.rpartition('.')[2] not in left_out:
        __import__(module.name)
from mmseg_cct.utils.processes import usable_cores
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.processes import end_session

assert usable_cores()
with OutputFolder(sys.argv[1], 'record.json'):
    write_text(os.path.join(sys.argv[1], 'a'), 'x')
process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
end_session(process)
assert process.wait(60)
"""


@pytest.mark.slow
def test_the_package_is_imported_and_a_folder_written_without_unix(tmp_path):
    pytest.importorskip('mmpretrain', reason='classifiers of weak labels are its parts')
    done = subprocess.run(
        [sys.executable, '-c', IMPORT_ALL, tmp_path / 'out'], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
