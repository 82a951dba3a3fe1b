"""The plugin in its host: what it imports, what it changes, what it needs of the system."""

import subprocess
import sys

import pytest

# All that the plugin needs is imported before it, so that the difference is its own. Windows and
# macOS lack what only Linux or Unix has, so nothing of the package needs it before it is used;
# other packages find out by themselves what there is.
HOST = """
import sys, warnings

before = list(warnings.filters)
import mmseg_cct
assert warnings.filters == before
own = {name for name in sys.modules if name.startswith('mm')}
assert own == {'mmseg_cct', 'mmseg_cct.version'}, own
assert not {'torch', 'numpy'} & set(sys.modules)

import importlib.util, multiprocessing, os, pkgutil, signal, socket, subprocess
from multiprocessing.queues import Queue
import filelock, matplotlib.pyplot, mmengine.runner, mmpretrain.models, mmseg.apis, scipy.stats
import torch.distributed.elastic.multiprocessing, torch.utils.tensorboard, yapf.yapflib.yapf_api
from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from mmengine.visualization import LocalVisBackend
from PIL import EpsImagePlugin, Image
from mmseg.registry import MODELS
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

for name in ('fcntl', 'grp', 'pwd', 'resource', 'termios'):
    sys.modules[name] = None
unix = 'fork forkpty geteuid getloadavg getpgid getuid killpg mkfifo sched_getaffinity setsid uname'
for name in unix.split():
    if hasattr(os, name):
        delattr(os, name)
for name in ('SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGUSR1'):
    delattr(signal, name)

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
changed = [name for name in before if before[name] != after[name]]
assert not changed, changed
assert CheckpointLoader._schemes != schemes and 'CCTSegmentor' in MODELS

left_out = ['__main__'] + ['triton_chain'] * (importlib.util.find_spec('triton') is None)
for module in pkgutil.walk_packages(mmseg_cct.__path__, 'mmseg_cct.'):
    if module.name.rpartition('.')[2] not in left_out:
        __import__(module.name)
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.studies.execution import end_session
from mmseg_cct.utils.processes import usable_cores

assert usable_cores()
with OutputFolder(sys.argv[1], 'record.json'):
    write_text(os.path.join(sys.argv[1], 'a'), 'x')
process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
end_session(process)
assert process.wait(60)
"""


@pytest.mark.slow
def test_the_import_changes_nothing_but_registries_and_the_loader_and_needs_no_unix(tmp_path):
    pytest.importorskip('mmpretrain', reason='classifiers of weak labels are its parts')
    command = [sys.executable, '-c', HOST, tmp_path / 'out']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
