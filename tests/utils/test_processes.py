import multiprocessing
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.utils import processes
from mmseg_cct.utils.processes import (
    choose_threads,
    end_with_parent,
    lacking,
    locked_folder,
    usable_cores,
)

FORK = multiprocessing.get_context('fork')  # quick: everything is imported


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
    with pytest.raises(UserError, match=f'process {holder.pid} on'):
        locked_folder(tmp_path, 'a run').__enter__()
    holder.kill()
    holder.join()
    with locked_folder(tmp_path, 'a run'):
        pass


def have_a_child(sender):
    FORK.Process(target=end_with_it, args=(sender,)).start()
    time.sleep(60)


def end_with_it(sender):
    end_with_parent()
    sender.send(os.getpid())
    time.sleep(60)


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
    with suppress(FileNotFoundError):  # or a zombie, as nobody may be there to collect it
        while Path(f'/proc/{child}/stat').read_text().split()[2] != 'Z':
            assert time.time() < end
            time.sleep(0.05)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Eight cores and a folder of cgroups."""
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(processes, '_CGROUP', tmp_path)
    for name in ('OMP_WAIT_POLICY', 'OMP_NUM_THREADS'):
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)
    return tmp_path


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace('__', '/')
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ('files', 'expected'),
    [
        ({}, 8),
        ({'cpu.max': 'max 100000\n'}, 8),
        ({'cpu.max': '250000 100000\n'}, 2),
        ({'cpu.max': '50000 100000\n'}, 1),
        ({'cpu.max': '9900000 100000\n'}, 8),
        ({'cpu.max': 'broken'}, 8),
        ({'cpu__cpu.cfs_quota_us': '300000\n', 'cpu__cpu.cfs_period_us': '100000\n'}, 3),
        ({'cpu__cpu.cfs_quota_us': '-1\n', 'cpu__cpu.cfs_period_us': '100000\n'}, 8),
    ],
)
def test_cores_are_those_of_affinity_and_quota(machine, files, expected):
    write(machine, **files)
    assert usable_cores() == expected
    choose_threads()
    assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'
    # without a quota torch knows better: it counts no hyperthreads
    assert os.environ.get('OMP_NUM_THREADS') == (str(expected) if expected < 8 else None)


def test_what_the_user_has_set_wins(machine, monkeypatch):
    write(machine, **{'cpu.max': '200000 100000'})
    chosen = dict(OMP_WAIT_POLICY='ACTIVE', OMP_NUM_THREADS='5')
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    choose_threads()
    assert {name: os.environ[name] for name in chosen} == chosen


class _Locks(torch.utils.data.Dataset):
    """What no worker can pass on."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return threading.Lock()


def _as_it_is(batch):
    return batch


def test_a_batch_that_cannot_be_passed_on_ends_the_loading(capfd):
    loader = torch.utils.data.DataLoader(_Locks(), num_workers=1, collate_fn=_as_it_is)
    with pytest.raises(RuntimeError, match='DataLoader worker') as caught:
        next(iter(loader))
    assert 'num_workers=0' in lacking(caught.value)
    assert "a loading worker: TypeError: cannot pickle '_thread.lock'" in capfd.readouterr().err


def test_a_loader_without_queues_says_so_once(monkeypatch, capfd):
    def full(*_, **__):
        raise OSError(28, 'No space left on device')

    loader = torch.utils.data.DataLoader(_Locks(), num_workers=1)
    monkeypatch.setattr('torch.multiprocessing.Event', full)
    monkeypatch.setattr('multiprocessing.context.BaseContext.Event', full)
    with pytest.raises(OSError, match='No space left'):
        iter(loader)
    assert '_workers_done_event' not in capfd.readouterr().err


@pytest.mark.parametrize(
    'error', [RuntimeError('CUDA error: out of shared memory'), OSError(28, 'No space left')]
)
def test_other_errors_are_not_of_workers(error):
    assert lacking(error) is None
