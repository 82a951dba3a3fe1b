import os
from pathlib import Path

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import (
    claim_output_folder,
    remove_parts,
    require_new_file,
    require_outside,
    require_own_folder,
    write_atomic,
    write_text,
)


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    file = tmp_path / 'a/b.txt'
    write_atomic(file, b'1')
    write_atomic(file, b'2')
    assert file.read_bytes() == b'2'
    assert os.listdir(tmp_path / 'a') == ['b.txt']


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path):
    write_atomic(tmp_path / ('n' * 255), b'1')
    assert (tmp_path / ('n' * 255)).read_bytes() == b'1'


def test_a_failed_write_keeps_the_old_file_and_leaves_no_part(tmp_path, monkeypatch):
    write_atomic(tmp_path / 'a', b'old')

    def full(_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match='No space'):
        write_atomic(tmp_path / 'a', b'new')
    assert os.listdir(tmp_path) == ['a']
    assert (tmp_path / 'a').read_bytes() == b'old'


def test_parts_of_killed_writers_are_removed(tmp_path):
    for name in ('.12-ab.part', '.hidden', 'my.part'):
        (tmp_path / name).write_text('x')
    remove_parts(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ['.hidden', 'my.part']


class TestFolders:
    def test_new_empty_and_own_ones_are_taken(self, tmp_path):
        (tmp_path / 'empty').mkdir()
        (tmp_path / 'empty/.DS_Store').write_text('x')
        for name in ('new', 'empty'):
            for _ in range(2):
                claim_output_folder(tmp_path / name, 'tool.json')
                (tmp_path / name / 'result').write_text('x')
            assert (tmp_path / name / 'tool.json').is_file()

    def test_another_process_may_write_the_record_meanwhile(self, tmp_path, monkeypatch):
        list_files = Path.iterdir

        def write_then_list(folder):
            (tmp_path / 'tool.json').write_text('{}')
            return list_files(folder)

        monkeypatch.setattr(Path, 'iterdir', write_then_list)
        require_own_folder(tmp_path, 'tool.json')

    def test_others_are_refused(self, tmp_path):
        (tmp_path / 'a.png').write_text('x')
        with pytest.raises(UserError, match=r'--out: .* holds a\.png and has no tool\.json'):
            claim_output_folder(tmp_path, 'tool.json')
        assert os.listdir(tmp_path) == ['a.png']
        with pytest.raises(UserError, match=r'--show-dir: .*a\.png is a file; expected a folder'):
            require_own_folder(tmp_path / 'a.png', 'tool.json', '--show-dir')

    def test_data_is_refused_with_all_below_it_even_if_empty(self, tmp_path):
        for below in ('', 'a', 'a/b'):
            with pytest.raises(UserError, match=r'lies in the folder .* which is read'):
                require_outside(tmp_path / below, {tmp_path}, '--out')
            with pytest.raises(UserError, match=r'lies in the folder .* which is read'):
                claim_output_folder(tmp_path / below, 'tool.json', {tmp_path})
        require_outside(tmp_path, {tmp_path / 'a'}, '--out')

    def test_links_are_followed(self, tmp_path):
        (tmp_path / 'images').mkdir()
        (tmp_path / 'link').symlink_to(tmp_path / 'images')
        with pytest.raises(UserError, match='lies in the folder'):
            claim_output_folder(tmp_path / 'link/out', 'tool.json', {tmp_path / 'images'})

    def test_circles_of_links_and_zero_bytes_are_no_bug(self, tmp_path):
        (tmp_path / 'loop').symlink_to('loop')
        require_outside(tmp_path / 'loop', {tmp_path / 'loop/a'}, '--out')
        for paths in (('a\0b', {tmp_path}), (tmp_path, {Path('a\0b')})):
            with pytest.raises(UserError, match=r"'a\\x00b': embedded null byte; expected"):
                require_outside(*paths, '--out')


class TestFiles:
    def test_a_new_one_is_fine(self, tmp_path):
        require_new_file(tmp_path / 'a')

    def test_an_existing_one_needs_the_option(self, tmp_path):
        (tmp_path / 'a').write_text('x')
        with pytest.raises(UserError, match='a: exists; expected a new file, or --overwrite'):
            require_new_file(tmp_path / 'a')
        require_new_file(tmp_path / 'a', overwrite=True)

    def test_an_input_is_never_replaced(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path('a').write_text('x')
        os.link('a', 'b')
        for name in ('a', 'b', './a'):
            with pytest.raises(UserError, match='is read and would be replaced'):
                require_new_file(name, overwrite=True, inputs=['none', 'a'])

    def test_a_folder_is_no_file(self, tmp_path):
        with pytest.raises(UserError, match='is a folder; expected the name of a file'):
            require_new_file(tmp_path, overwrite=True)


def test_text_with_the_name_of_a_latin_1_file_is_written(tmp_path):
    name = os.fsdecode(b'caf\xe9.png')
    write_text(tmp_path / 'a/x.md', f'{name} ä')
    assert (tmp_path / 'a/x.md').read_text(encoding='utf-8') == r'caf\udce9.png ä'
