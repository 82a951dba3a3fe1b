import errno
import os
import threading

import pytest
from ranks import on_two_ranks, without_cuda

from mmseg_cct.errors import Interrupted, UserError
from mmseg_cct.utils import shares
from mmseg_cct.utils.shares import (
    ImageCounts,
    SharedImages,
    ahead,
    connected,
    gather,
    on_first_process,
    own_share,
    progress_bar,
)


def fail():
    raise UserError('wrong')


def fill_the_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'out')


def test_a_single_process_does_everything():
    with connected('none') as rank:
        assert rank == 0
        assert on_first_process(lambda: 3) == 3
        assert own_share([1, 2, 3]) == [1, 2, 3]
        assert gather('all') == ['all']
    with pytest.raises(UserError, match='wrong'):
        on_first_process(fail)


@without_cuda
@pytest.mark.parametrize(('mistake', 'told'), [(fail, 'wrong'), (fill_the_disk, 'No space left')])
def test_all_processes_tell_the_mistake_of_the_first(tmp_path, mistake, told):
    def call(rank):
        try:
            on_first_process(mistake)
        except (UserError, OSError) as error:
            return type(error).__name__, str(error)

    first, second = on_two_ranks(call, tmp_path)
    assert first == second and told in first[1]


@pytest.mark.parametrize('number', [1, 2, 3, 7])
def test_shares_are_disjoint_and_complete(monkeypatch, number):
    items, taken = list(range(20)), []
    monkeypatch.setattr(shares, 'get_world_size', lambda: number)
    for rank in range(number):
        monkeypatch.setattr(shares, 'get_rank', lambda rank=rank: rank)
        share = own_share(items)
        assert len(share) in (20 // number, 20 // number + 1)
        taken += share
    assert sorted(taken) == items


def test_the_first_process_shows_its_part_of_the_progress(monkeypatch, capsys):
    monkeypatch.setattr(shares, 'get_world_size', lambda: 4)
    with progress_bar(number=10, done=8) as bar:
        assert (bar.n, bar.total) == (2, 12)
    assert 'process 1 of 4' in capsys.readouterr().err
    monkeypatch.setattr(shares, 'get_rank', lambda: 1)
    with progress_bar(number=10, done=8):
        pass
    assert capsys.readouterr().err == ''


def test_ctrl_c_says_how_far_it_is(capsys):
    with (
        pytest.raises(Interrupted, match=r'^3 of 9 images done; the same command goes on$'),
        progress_bar(number=7, done=2) as bar,
    ):
        bar.update()
        raise KeyboardInterrupt


def test_images_are_counted_and_an_unreadable_one_is_one_line():
    with SharedImages(['a.png', 'b.png', 'c.png'], skipped=2) as share:
        assert share.own == ['a.png', 'b.png', 'c.png']
        share.written(2)
        share.failed('c.png: cut off')
    counts = share.total()
    assert counts.failed == ['c.png: cut off']
    assert counts.describe('out') == '2 written to out, 2 there already, 1 unreadable'


def test_counts_of_all_processes_add_up(monkeypatch):
    parts = [ImageCounts(2, 5, ['b']), ImageCounts(3, 5, ['c', 'a'])]
    monkeypatch.setattr(shares, 'gather', lambda own: parts)
    assert SharedImages([], skipped=5).total() == ImageCounts(5, 5, ['a', 'b', 'c'])


def test_results_come_in_order_and_a_few_items_are_taken_ahead():
    taken, main = [], threading.get_ident()

    def items():
        for item in range(20):
            assert threading.get_ident() == main
            taken.append(item)
            yield item

    results = ahead(lambda item: (item, threading.get_ident() != main), items())
    assert next(results) == (0, True)
    assert 1 < len(taken) < 10
    assert list(results) == [(item, True) for item in range(1, 20)]


def test_an_error_is_raised_in_its_turn_and_what_was_begun_is_finished():
    done = []

    def work(item):
        if item == 1:
            raise ValueError('second')
        done.append(item)
        return item

    results = ahead(work, range(3))
    assert next(results) == 0
    with pytest.raises(ValueError, match='second'):
        next(results)
    assert done == [0, 2]
