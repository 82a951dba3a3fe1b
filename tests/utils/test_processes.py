import multiprocessing
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import end_with_parent, locked_folder

FORK = multiprocessing.get_context('fork')  # quick: everything is imported


def hold(folder, held):
    with locked_folder(folder, 'a run'):
        held.set()
        time.sleep(60)


def have_a_child(sender):
    FORK.Process(target=end_with_it, args=(sender,)).start()
    time.sleep(60)


def end_with_it(sender):
    end_with_parent()
    sender.send(os.getpid())
    time.sleep(60)


@pytest.mark.slow
def test_a_lock_is_held_until_its_end(tmp_path):
    for _ in range(2):
        with locked_folder(tmp_path / 'new', 'a run'):
            with pytest.raises(UserError, match='new: in use by a run, process') as caught:
                locked_folder(tmp_path / 'new', 'a run').__enter__()
            assert f'process {os.getpid()} on {socket.gethostname()};' in str(caught.value)
        assert not list((tmp_path / 'new').iterdir())


def count_up(folder, number):
    """Adds to a number in a file; two at once would lose some."""
    for _ in range(number):
        while True:
            with suppress(UserError), locked_folder(folder / 'x', 'a run'):
                (folder / 'count').write_text(str(int((folder / 'count').read_text()) + 1))
                break


@pytest.mark.slow
def test_a_removed_lock_lets_nobody_in_beside_its_next_holder(tmp_path):
    (tmp_path / 'count').write_text('0')
    counting = [FORK.Process(target=count_up, args=(tmp_path, 200)) for _ in range(3)]
    for process in counting:
        process.start()
    for process in counting:
        process.join(60)
    assert (tmp_path / 'count').read_text() == '600'


@pytest.mark.parametrize(
    'make',
    [
        lambda lock, file: lock.symlink_to(file),
        lambda lock, file: lock.symlink_to(file.parent / 'new'),
        lambda lock, file: lock.hardlink_to(file),
        lambda lock, file: lock.write_text('my own'),
        lambda lock, file: lock.mkdir(),
        lambda lock, file: os.mkfifo(lock),
    ],
    ids=['link', 'link to nothing', 'hard link', 'other text', 'folder', 'FIFO'],
)
def test_what_is_no_lock_is_not_written(make, tmp_path):
    (tmp_path / 'notes.txt').write_text('process of writing')
    (tmp_path / 'work').mkdir()
    make(tmp_path / 'work/.lock', tmp_path / 'notes.txt')
    for _ in range(2):
        with pytest.raises(UserError, match=r'work/\.lock: .*; expected '):
            locked_folder(tmp_path / 'work', 'a run').__enter__()
    assert (tmp_path / 'notes.txt').read_text() == 'process of writing'
    assert not (tmp_path / 'new').exists()


@pytest.mark.slow
def test_a_killed_process_holds_no_lock(tmp_path):
    held = FORK.Event()
    holder = FORK.Process(target=hold, args=(tmp_path, held))
    holder.start()
    assert held.wait(60)
    with pytest.raises(UserError, match=f'process {holder.pid} on'):
        locked_folder(tmp_path, 'a run').__enter__()
    holder.kill()
    holder.join()
    with locked_folder(tmp_path, 'a run'):
        pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='prctl is of Linux')
def test_a_process_ends_with_its_parent():
    receiver, sender = FORK.Pipe()
    parent = FORK.Process(target=have_a_child, args=(sender,))
    parent.start()
    child = receiver.recv()
    parent.kill()
    parent.join()
    end = time.time() + 10
    while os.path.exists(f'/proc/{child}') and time.time() < end:
        state = Path(f'/proc/{child}/stat').read_text().split()[2]
        if state == 'Z':  # nobody may be there to collect it
            break
        time.sleep(0.05)
    else:
        assert not os.path.exists(f'/proc/{child}')
