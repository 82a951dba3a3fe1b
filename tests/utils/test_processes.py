import errno
import multiprocessing
import os
import sys
import threading
import time

import pytest
from ranks import on_two_ranks, without_cuda

from mmseg_cct.errors import UserError
from mmseg_cct.utils import processes
from mmseg_cct.utils.processes import (
    SharedImages,
    ahead,
    end_with_parent,
    image_threads,
    on_first_process,
)

FORK = multiprocessing.get_context('fork')  # quick: everything is imported


def fail():
    raise UserError('wrong')


def fill_the_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'out')


@without_cuda
def test_all_processes_tell_the_mistake_of_the_first(tmp_path):
    def call(rank):
        told = []
        for mistake in (fail, fill_the_disk):
            try:
                on_first_process(mistake)
            except (UserError, OSError) as error:
                told.append((type(error).__name__, str(error)))
        return told

    first, second = on_two_ranks(call, tmp_path)
    assert first == second
    assert first[0] == ('UserError', 'wrong') and 'No space left' in first[1][1]


@pytest.mark.parametrize('number', [1, 3])
def test_images_are_shared_and_counted_and_the_first_process_shows_its_part(
    monkeypatch, number, capsys
):
    items, shared = [*'abcdefghij'], []
    monkeypatch.setattr(processes, 'get_world_size', lambda: number)
    for rank in range(number):
        monkeypatch.setattr(processes, 'get_rank', lambda rank=rank: rank)
        share = SharedImages(items, skipped=3)
        for item in share.own:
            share.failed('c: cut off') if item == 'c' else share.written()
        shared.append(share)
        assert (f'/{13 if number == 1 else 5} [' in capsys.readouterr().err) == (rank == 0)
    assert sorted(item for share in shared for item in share.own) == items
    assert len(shared[-1].own) == 10 // number
    monkeypatch.setattr(processes, 'gather', lambda _: [share._counts for share in shared])
    counts = shared[-1].total()
    assert counts.failed == ['c: cut off']
    assert counts.describe('out') == '9 written to out, 3 there already, 1 unreadable'


def test_results_and_errors_come_in_order_and_a_few_items_are_taken_ahead():
    taken, main = [], threading.get_ident()

    def items():
        for item in range(20):
            assert threading.get_ident() == main
            taken.append(item)
            yield item

    def work(item):
        if item == 15:
            raise ValueError('its turn')
        return item, threading.get_ident() != main

    results = ahead(work, items())
    assert next(results) == (0, True)
    assert 1 < len(taken) < 10
    assert [next(results) for _ in range(14)] == [(item, True) for item in range(1, 15)]
    with pytest.raises(ValueError, match='its turn'):
        next(results)


def test_a_thread_that_has_read_images_does_not_end():
    # else about one of a hundred forks right after waits for ever in its first `imdecode`
    threads = set(ahead(lambda _: threading.current_thread(), range(20)))
    assert all(thread.is_alive() for thread in threads)


@without_cuda
def test_a_fork_has_threads_of_its_own():
    assert image_threads().submit(os.getpid).result() == os.getpid()
    process = os.fork()
    if process == 0:
        os._exit(image_threads().submit(os.getpid).result() != os.getpid())
    assert os.waitpid(process, 0)[1] == 0


def test_no_call_runs_after_the_results_have_ended():
    running = []

    def work(item):
        running.append(item)
        time.sleep(0.01)
        running.remove(item)
        return item

    results = ahead(work, range(100))
    assert next(results) == 0
    results.close()
    assert not running


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
