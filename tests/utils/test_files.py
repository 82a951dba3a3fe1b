import errno
import multiprocessing
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import (
    append_line,
    locked_folder,
    output_file,
    read_lines,
    read_record,
    remove_parts,
    require_outside,
    write_atomic,
    write_record,
)

FORK = multiprocessing.get_context('fork')  # quick: everything is imported


class Record(NamedTuple):
    name: str
    counts: dict[str, list[int]]
    stamp: list[int] | None = None


RECORD = Record('a', {'x': [1, 2]})


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    name = 'n' * 255  # as long as file systems allow
    for data in (b'1', b'2'):
        write_atomic(tmp_path / 'a' / name, data)
    assert (tmp_path / 'a' / name).read_bytes() == b'2'
    assert os.listdir(tmp_path / 'a') == [name]


def test_a_failed_write_keeps_the_old_file_leaves_no_part_and_names_the_file(tmp_path, monkeypatch):
    write_atomic(tmp_path / 'a', b'old')

    def full(_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match='No space') as caught:
        write_atomic(tmp_path / 'a', b'new')
    assert caught.value.filename == str(tmp_path / 'a')
    assert os.listdir(tmp_path) == ['a']
    assert (tmp_path / 'a').read_bytes() == b'old'


def test_parts_of_killed_writers_are_removed_and_those_below_on_demand(tmp_path):
    below = tmp_path / 'a/b/.12-ab.part.mp4'
    for path in (below, *(tmp_path / name for name in ('.12-ab.part', '.hidden', 'my.part'))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    remove_parts(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ['.hidden', 'a', 'my.part'] and below.exists()
    remove_parts(tmp_path, '**/')
    assert not below.exists()


class TestRecords:
    def test_what_is_written_is_read_but_a_line_that_a_kill_cut_short(self, tmp_path):
        write_record(tmp_path / 'r.json', RECORD)
        assert read_record(tmp_path / 'r.json', Record, 'a record') == RECORD
        append_line(tmp_path / 'lines', RECORD._asdict())
        with (tmp_path / 'lines').open('ab') as file:
            file.write(b'\n\xff\xfe{"na')
        append_line(tmp_path / 'lines', RECORD._replace(stamp=[1])._asdict())
        assert [*read_lines(tmp_path / 'lines', Record)] == [RECORD, RECORD._replace(stamp=[1])]

    @pytest.mark.parametrize('content', [b'{"name": "a"', b'\xff\xfe', b'{"more": 1}'])
    def test_a_damaged_one_is_one_line_and_stays(self, content, tmp_path):
        file = tmp_path / 'r.json'
        file.write_bytes(content)
        with pytest.raises(UserError, match=r'r\.json: .*; expected what it is') as caught:
            read_record(file, Record, 'what it is')
        assert len(str(caught.value).splitlines()) == 1
        assert file.read_bytes() == content


def test_data_are_refused_with_all_below_them_even_if_empty_and_by_links(tmp_path):
    (tmp_path / 'images').mkdir()
    (tmp_path / 'link').symlink_to(tmp_path / 'images')
    for place in ('images', 'images/a/b', 'link/out'):
        with pytest.raises(UserError, match=r'is read or lies in .*images, which is read'):
            require_outside(tmp_path / place, {tmp_path / 'images'}, '--out')
    require_outside(tmp_path, {tmp_path / 'images'}, '--out')


def test_a_file_is_replaced_on_demand_alone_and_an_input_never(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert output_file('new') == Path('new')
    Path('a').write_text('x')
    os.symlink('a', 'b')
    with pytest.raises(UserError, match='a: exists; expected a new file, or --overwrite'):
        output_file('a')
    output_file('a', overwrite=True)
    for name in ('a', 'b', './a'):
        with pytest.raises(UserError, match=r'^OUT: .* is read'):
            output_file(name, ['none', 'a'], overwrite=True, option='OUT')


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
