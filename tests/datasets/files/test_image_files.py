"""Images, masks and lists of images are found."""

import os

import pytest

from mmseg_cct.datasets.files.image_files import (
    find_files,
    find_images,
    find_listed,
    find_masks,
    read_list,
    resolve_list,
    suffix_of_masks,
    write_list,
)
from mmseg_cct.datasets.files.images import image_size, read_image, read_mask
from mmseg_cct.errors import UserError


def _touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize(
    ('masks', 'images', 'expected'),
    [
        (['a_mask', 'x/b_mask'], ['a', 'c', 'x/b'], '_mask'),
        (['12_m'], ['1', '12'], '_m'),
        (['a_mask', 'b_m'], ['a', 'b'], None),
        (['a_mask', 'c_mask'], ['a', 'b'], None),
        (['a', 'b'], ['a', 'b'], None),
        ([], ['a'], None),
    ],
)
def test_the_end_that_all_names_of_masks_have(masks, images, expected):
    assert suffix_of_masks(masks, images) == expected


class TestFindImages:
    def test_every_format_or_those_with_a_suffix_in_depth(self, tmp_path):
        _touch(tmp_path, 'b_x.JPG', 'a/c.d.png', 'a/e_x.jpg', 'f.txt', 'g.jpg.md', '.png')
        assert find_images(tmp_path) == {
            'a/c.d': f'{tmp_path}/a/c.d.png',
            'a/e_x': f'{tmp_path}/a/e_x.jpg',
            'b_x': f'{tmp_path}/b_x.JPG',
        }
        others = []
        assert list(find_images(tmp_path, others=others)) == ['a/c.d', 'a/e_x', 'b_x']
        assert others == [f'{tmp_path}/f.txt', f'{tmp_path}/g.jpg.md']
        assert list(find_images(tmp_path, '_x.jpg')) == ['a/e', 'b']

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / 'a.png')
        for read in (read_image, read_mask, lambda path: image_size(str(path), None, True)):
            with pytest.raises(UserError, match=r'a\.png: a pipe or a device; expected a file'):
                read(tmp_path / 'a.png')
        with pytest.raises(UserError, match=r'a\.png: a pipe or a device; expected a file'):
            find_images(tmp_path)

    def test_linked_folders_are_searched_once(self, tmp_path):
        _touch(tmp_path, 'elsewhere/a.png', 'images/b.png')
        (tmp_path / 'images/seq').symlink_to(tmp_path / 'elsewhere')
        (tmp_path / 'elsewhere/circle').symlink_to(tmp_path / 'images')
        assert list(find_images(tmp_path / 'images')) == ['b', 'seq/a']

    def test_a_mesh_of_links_ends(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            'mmseg_cct.datasets.files.image_files._MOST_WAYS', 10
        )  # 1000 take seconds
        for i in range(4):
            (tmp_path / f'd{i}').mkdir()
            for j in range(4):
                (tmp_path / f'd{i}/l{j}').symlink_to(tmp_path / f'd{j}')
        with pytest.raises(UserError, match=r'in more than 10 ways; expected fewer links'):
            find_images(tmp_path)

    @pytest.mark.parametrize(
        ('names', 'suffix', 'message'),
        [
            (None, None, 'no such folder; expected a folder of images'),
            (['a.txt'], None, r'no image in this folder; expected \.jpg, \.jpeg'),
            (['a.jpg'], '.png', r'no image in this folder; expected names that end in \.png'),
            (['link.png'], None, r'link\.png: a link to gone\.png, which is not there'),
            (['a.jpg', 'a.png'], None, r'a\.png: differs from a\.jpg in its extension only'),
        ],
    )
    def test_what_is_no_folder_of_images(self, tmp_path, names, suffix, message):
        for name in names or ():
            if name.startswith('link'):
                (tmp_path / name).symlink_to('gone.png')
            else:
                (tmp_path / name).touch()
        with pytest.raises(UserError, match=message):
            find_images(tmp_path if names else tmp_path / 'nowhere', suffix)


class TestFindMasks:
    def test_every_case_of_the_suffix_in_depth(self, tmp_path):
        _touch(tmp_path, 'b_mask.PNG', 'a/c_mask.png', 'd.png')
        assert find_masks(tmp_path, '_mask.png') == {
            'a/c': f'{tmp_path}/a/c_mask.png',
            'b': f'{tmp_path}/b_mask.PNG',
        }

    def test_paths_are_in_the_order_of_path_objects(self, tmp_path, monkeypatch):
        _touch(tmp_path, 'a-b/x.png', 'a/y.png', 'a.png', 'a/b/z.png', 'B.png')
        expected = sorted(path for path in tmp_path.rglob('*.png'))
        assert find_files(tmp_path) == list(map(str, expected))
        monkeypatch.chdir(tmp_path)
        assert find_files('.') == [str(path.relative_to(tmp_path)) for path in expected]

    def test_ambiguous(self, tmp_path):
        _touch(tmp_path, 'a.png', 'a.PNG')
        if len(list(tmp_path.iterdir())) == 1:
            pytest.skip('a file system that knows no case')
        with pytest.raises(UserError, match=r'a\.png: differs from a\.PNG .* one mask for each'):
            find_masks(tmp_path)


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
