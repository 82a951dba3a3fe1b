import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_lists import (
    find_listed,
    read_list,
    resolve_list,
    write_list,
)

TWO = ['07_1', '07_3']


class TestReadList:
    @pytest.mark.parametrize(
        ('text', 'names'),
        [
            ('a/b\n\n  c d \r\ne.jpg', ['a/b', 'c d', 'e.jpg']),
            ('/JPEGImages/07_1.jpg /Seg/07_1.png\n/JPEGImages/07_3.jpg\t/Seg/07_3.png', TWO),
            ('\ufeffa\nb\n', ['a', 'b']),  # a byte order mark
        ],
    )
    def test_one_column_or_two(self, tmp_path, text, names):
        (tmp_path / 'list').write_bytes(text.encode())
        assert read_list(tmp_path / 'list') == names

    @pytest.mark.parametrize('names', [['b', 'a'], ['a\u2028b', 'c\x0cd']])
    def test_reads_what_is_written(self, tmp_path, names):
        write_list(tmp_path / 'new' / 'list', names)
        assert read_list(tmp_path / 'new' / 'list') == names

    @pytest.mark.parametrize(
        ('content', 'message'),
        [
            (None, 'no such file; expected a text file'),
            ('folder', 'cannot be read'),
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
        if content == 'folder':
            (tmp_path / 'list').mkdir()
        elif content is not None:
            (tmp_path / 'list').write_bytes(content)
        with pytest.raises(UserError, match=f'list: {message}'):
            read_list(tmp_path / 'list')

    @pytest.mark.parametrize('name', ['a\nb', 'a\rb', ' a', 'a.jpg b.png', 'a\udcff'])
    def test_writes_no_name_that_it_would_not_read(self, tmp_path, name):
        with pytest.raises(UserError, match=r'list: .* cannot be a line of a list') as caught:
            write_list(tmp_path / 'list', ['c', name])
        assert '\n' not in str(caught.value) and not (tmp_path / 'list').exists()


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
