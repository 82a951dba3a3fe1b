import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_lists import (
    find_listed,
    read_list,
    resolve_list,
    write_list,
)


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

    @pytest.mark.parametrize(
        ('content', 'message'),
        [
            (None, 'no such file; expected a text file'),
            (b'', 'the list is empty; expected'),
            (b'\n \n', 'the list is empty; expected'),
            (b'a\nb\na\n', 'a is listed twice; expected every image once'),
            (b'a.b\na.JPG\na\n', r'a\.JPG and a are the same image; expected'),
            (b'\xff\xfe\x00\x81', 'cannot be read'),
            ('Straße'.encode('latin-1'), 'cannot be read .*; expected .*saved as UTF-8$'),
            ('Straße'.encode('utf-16'), 'cannot be read .*; expected .*saved as UTF-8$'),
            ('a'.encode('utf-16-le'), 'cannot be read .*; expected .*saved as UTF-8$'),
        ],
    )
    def test_what_is_no_list(self, tmp_path, content, message):
        if content is not None:
            (tmp_path / 'list').write_bytes(content)
        with pytest.raises(UserError, match=f'list: {message}'):
            read_list(tmp_path / 'list')

    def test_byte_order_mark(self, tmp_path):
        (tmp_path / 'list').write_text('a\nb\n', encoding='utf-8-sig')
        assert read_list(tmp_path / 'list') == ['a', 'b']

    @pytest.mark.parametrize('name', ['a\nb', 'a\rb', ' a', 'a.jpg b.png', 'a\udcff'])
    def test_writes_no_name_that_it_would_not_read(self, tmp_path, name):
        with pytest.raises(UserError, match=r'list: .* cannot be a line of a list') as caught:
            write_list(tmp_path / 'list', ['c', name])
        assert '\n' not in str(caught.value) and not (tmp_path / 'list').exists()

    def test_reads_names_with_other_separators(self, tmp_path):
        write_list(tmp_path / 'list', ['a\u2028b', 'c\x0cd'])
        assert read_list(tmp_path / 'list') == ['a\u2028b', 'c\x0cd']

    def test_folder(self, tmp_path):
        with pytest.raises(UserError, match='cannot be read'):
            read_list(tmp_path)


class TestFindListed:
    @pytest.mark.parametrize(
        ('name', 'found'),
        [
            ('a/b', 'a/b'),
            ('a/b.jpg', 'a/b'),
            ('a/b.PNG', 'a/b'),
            ('c.v2', 'c.v2'),
            ('c.v2.jpg', 'c.v2'),
            ('d.jpg', 'd.jpg'),  # of d.jpg.jpg
            ('c', None),
            ('a/b.v2', None),  # not an extension: another image
            ('b', None),
        ],
    )
    def test_only_extensions_of_images_are_cut(self, name, found):
        assert find_listed(name, {'a/b': 0, 'c.v2': 1, 'd.jpg': 2, 'd': 3}) == found


class TestResolveList:
    def test_prefers_the_working_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write_list('lists/a.txt', ['a'])
        assert resolve_list('lists/a.txt') == str(tmp_path / 'lists' / 'a.txt')

    @pytest.mark.parametrize('name', ['', 'train.txt', '/nowhere/train.txt'])
    def test_leaves_others(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert resolve_list(name) == name
