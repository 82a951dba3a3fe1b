import pytest

from mmseg_cct.datasets.image_lists import read_list, resolve_list, write_list
from mmseg_cct.errors import UserError


class TestReadList:
    def test_one_column(self, tmp_path):
        (tmp_path / 'list').write_text('a/b\n\n  c d \r\ne.jpg')
        assert read_list(tmp_path / 'list') == ['a/b', 'c d', 'e.jpg']

    def test_two_columns(self, tmp_path):
        (tmp_path / 'list').write_text(
            '/JPEGImages/2007_000032.jpg /SegmentationClassAug/2007_000032.png\n'
            '/JPEGImages/2007_000039.jpg\t/SegmentationClassAug/2007_000039.png\n'
        )
        assert read_list(tmp_path / 'list') == ['2007_000032', '2007_000039']

    def test_reads_what_is_written(self, tmp_path):
        write_list(tmp_path / 'new' / 'list', ['b', 'a'])
        assert read_list(tmp_path / 'new' / 'list') == ['b', 'a']

    def test_missing(self, tmp_path):
        with pytest.raises(UserError, match='list: no such file; expected a text file'):
            read_list(tmp_path / 'list')

    @pytest.mark.parametrize('content', ['', '\n \n'])
    def test_empty(self, tmp_path, content):
        (tmp_path / 'list').write_text(content)
        with pytest.raises(UserError, match='the list is empty; expected'):
            read_list(tmp_path / 'list')

    def test_twice(self, tmp_path):
        (tmp_path / 'list').write_text('a\nb\na\n')
        with pytest.raises(UserError, match='list: a is listed twice; expected every image once'):
            read_list(tmp_path / 'list')

    def test_not_text(self, tmp_path):
        (tmp_path / 'list').write_bytes(b'\xff\xfe\x00\x81')
        with pytest.raises(UserError, match='list: cannot be read'):
            read_list(tmp_path / 'list')

    def test_folder(self, tmp_path):
        with pytest.raises(UserError, match='cannot be read'):
            read_list(tmp_path)


class TestResolveList:
    def test_prefers_the_working_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write_list('lists/a.txt', ['a'])
        assert resolve_list('lists/a.txt') == str(tmp_path / 'lists' / 'a.txt')

    @pytest.mark.parametrize('name', ['', 'train.txt', '/nowhere/train.txt'])
    def test_leaves_others(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert resolve_list(name) == name
