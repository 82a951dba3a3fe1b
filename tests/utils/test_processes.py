import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import locked_folder

HOLD = """
import sys
from mmseg_cct.utils.processes import locked_folder
with locked_folder(sys.argv[1], 'a run'):
    print('held', flush=True)
    sys.stdin.read()
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', '''
import time
from mmseg_cct.utils.processes import end_with_parent
end_with_parent()
print('ready', flush=True)
time.sleep(60)
'''])
print(child.pid, flush=True)
time.sleep(60)
"""


def start(code, *args):
    return subprocess.Popen(
        [sys.executable, '-c', code, *map(str, args)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_lock_is_held_until_its_end(tmp_path):
    for _ in range(2):
        with locked_folder(tmp_path / 'new', 'a run'):
            with pytest.raises(UserError, match='new: in use by a run, process') as caught:
                locked_folder(tmp_path / 'new', 'a run').__enter__()
            assert f'process {os.getpid()} on {socket.gethostname()};' in str(caught.value)


@pytest.mark.slow
def test_a_killed_process_holds_no_lock(tmp_path):
    holder = start(HOLD, tmp_path)
    assert holder.stdout.readline() == 'held\n'
    with pytest.raises(UserError, match=f'process {holder.pid} on'):
        locked_folder(tmp_path, 'a run').__enter__()
    holder.kill()
    holder.wait()
    with locked_folder(tmp_path, 'a run'):
        pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='prctl is of Linux')
def test_a_process_ends_with_its_parent():
    parent = start(PARENT)
    lines = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
    (child,) = lines - {'ready'}
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.time() + 10
    while os.path.exists(f'/proc/{child}') and time.time() < end:
        state = Path(f'/proc/{child}/stat').read_text().split()[2]
        if state == 'Z':  # nobody may be there to collect it
            break
        time.sleep(0.05)
    else:
        assert not os.path.exists(f'/proc/{child}')
