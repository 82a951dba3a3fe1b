import errno
import multiprocessing
import sys
import time

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import end_with_parent, locked_folder

FORK = multiprocessing.get_context('fork')  # quick: everything is imported


def test_a_file_system_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    errors = [NotImplementedError(), OSError(errno.ENOLCK, 'no locks'), OSError(28, 'full')]

    def acquire(*_):
        raise errors.pop(0)

    monkeypatch.setattr('filelock.FileLock.acquire', acquire)
    for _ in range(2):
        with locked_folder(tmp_path / 'new', 'a run'):
            assert (tmp_path / 'new').is_dir()
    with pytest.raises(OSError, match='full'):
        locked_folder(tmp_path, 'a run').__enter__()


def hold(folder, held):
    with locked_folder(folder, 'a run'):
        held.set()
        time.sleep(60)


@pytest.mark.slow
def test_a_killed_process_holds_no_lock(tmp_path):
    held = FORK.Event()
    holder = FORK.Process(target=hold, args=(tmp_path, held))
    holder.start()
    assert held.wait(60)
    with pytest.raises(UserError, match='in use by a run'):
        locked_folder(tmp_path, 'a run').__enter__()
    holder.kill()
    holder.join()
    with locked_folder(tmp_path, 'a run'):
        pass
    assert not list(tmp_path.iterdir())


def have_a_child(sender):
    FORK.Process(target=end_with_it, args=(sender,)).start()
    time.sleep(60)


def end_with_it(sender):
    end_with_parent()
    sender.send('started')
    time.sleep(60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='prctl is of Linux')
def test_a_process_ends_with_its_parent():
    receiver, sender = FORK.Pipe(duplex=False)
    parent = FORK.Process(target=have_a_child, args=(sender,))
    parent.start()
    sender.close()
    assert receiver.recv() == 'started'
    parent.kill()
    assert receiver.poll(10)  # both let go of the other end
