"""Windows and macOS lack what only Linux or Unix has, so nothing needs it before it is used."""

import subprocess
import sys

import pytest

# Other packages find out by themselves what there is, so they are imported first.
IMPORT_ALL = """
import multiprocessing, os, pkgutil, signal, socket, subprocess, sys
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

for module in pkgutil.walk_packages(mmseg_cct.__path__, 'mmseg_cct.'):
    if not module.name.endswith('__main__'):
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
