import pytest

from mmseg_cct.annotations.writers.own_files import RECORD, OwnFiles


def write(folder, name='a/b.json', text='one'):
    files = OwnFiles(folder)
    with files.open(name) as file:
        file.write(text)
    return files.kept


def test_own_files_are_replaced_and_edited_ones_kept(tmp_path):
    path = tmp_path / 'a/b.json'
    assert not write(tmp_path)
    assert not write(tmp_path, text='two') and path.read_text() == 'two'
    path.write_text('edited')
    assert write(tmp_path, text='three') == [path] and path.read_text() == 'edited'
    path.unlink()
    assert not write(tmp_path, text='three') and path.read_text() == 'three'
    (tmp_path / 'b.json').write_text('a stranger')
    assert write(tmp_path, 'b.json') == [tmp_path / 'b.json']


def test_a_stop_leaves_the_old_file_and_no_part(tmp_path):
    write(tmp_path)
    with pytest.raises(KeyboardInterrupt), OwnFiles(tmp_path).open('a/b.json') as file:
        file.write('half')
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.rglob('*') if path.is_file()] == [RECORD, 'b.json']
    assert (tmp_path / 'a/b.json').read_text() == 'one'


def test_a_record_that_a_kill_cut_short_loses_no_later_line(tmp_path):
    write(tmp_path)
    record = tmp_path / RECORD
    record.write_text(record.read_text() + '\n["a/b.js')
    write(tmp_path, text='two')
    assert not write(tmp_path, text='three')
