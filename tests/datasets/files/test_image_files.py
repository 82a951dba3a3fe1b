import pytest

from mmseg_cct.datasets.files.image_files import (
    find_images,
    find_listed,
    find_masks,
    read_list,
    write_list,
)
from mmseg_cct.errors import UserError


def _touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


class TestFindImages:
    def test_every_format_or_those_with_a_suffix_in_depth(self, tmp_path):
        _touch(tmp_path, 'b_x.JPG', 'a/c.d.png', 'a/e_x.jpg', 'f.txt', 'g.jpg.md', '.png')
        left_out = []
        assert find_images(tmp_path, left_out=left_out) == {
            'a/c.d': f'{tmp_path}/a/c.d.png',
            'a/e_x': f'{tmp_path}/a/e_x.jpg',
            'b_x': f'{tmp_path}/b_x.JPG',
        }
        assert left_out == [f'{tmp_path}/f.txt', f'{tmp_path}/g.jpg.md']
        assert list(find_images(tmp_path, '_x.jpg')) == ['a/e', 'b']

    def test_linked_folders_are_searched_once(self, tmp_path):
        _touch(tmp_path, 'elsewhere/a.png', 'images/b.png')
        (tmp_path / 'images/seq').symlink_to(tmp_path / 'elsewhere')
        (tmp_path / 'elsewhere/circle').symlink_to(tmp_path / 'images')
        assert list(find_images(tmp_path / 'images')) == ['b', 'seq/a']

    @pytest.mark.parametrize(
        ('names', 'suffix', 'message'),
        [
            ([], None, '/folder: no such folder'),
            (['a.jpg'], '.png', '/folder: no image in this folder'),
            (
                ['a.jpg', 'a.png'],
                None,
                r'/folder/a\.png: differs from a\.jpg in its extension or Unicode form only',
            ),
        ],
    )
    def test_what_is_no_folder_of_images(self, tmp_path, names, suffix, message):
        _touch(tmp_path / 'folder', *names)
        with pytest.raises(UserError, match=message):
            find_images(tmp_path / 'folder', suffix)

    def test_names_are_compared_in_one_unicode_form_without_what_tools_keep(self, tmp_path):
        _touch(tmp_path, 'a\N{COMBINING DIAERESIS}.jpg', '._a.jpg')
        _touch(tmp_path, '.ipynb_checkpoints/b.jpg', '@eaDir/c.jpg/d.jpg', '#recycle/e.jpg')
        assert list(find_images(tmp_path)) == ['ä'] and find_listed('a\u0308.jpg', ['ä']) == 'ä'
        _touch(tmp_path, 'ä.jpg')
        with pytest.raises(UserError, match='Unicode form'):
            find_images(tmp_path)


class TestFindMasks:
    def test_every_case_of_the_suffix_in_depth(self, tmp_path):
        _touch(tmp_path, 'b_mask.PNG', 'a/c_mask.png', 'd.png')
        assert find_masks(tmp_path, '_mask.png') == {
            'a/c': f'{tmp_path}/a/c_mask.png',
            'b': f'{tmp_path}/b_mask.PNG',
        }


TWO = ['07_1', '07_3']
DATED = ['2023.10.12 14.33.00', '2023.10.12 14.33.01.jpg']


class TestReadList:
    @pytest.mark.parametrize(
        ('text', 'names'),
        [
            ('a/b\n\n  c d \r\ne.jpg', ['a/b', 'c d', 'e.jpg']),
            ('/JPEGImages/07_1.jpg /Seg/07_1.png\n/JPEGImages/07_3.jpg\t/Seg/07_3.png', TWO),
            ('\ufeffa\nb\n', ['a', 'b']),  # a byte order mark
            ('2023.10.12 14.33.00\n2023.10.12 14.33.01.jpg', DATED),
        ],
    )
    def test_one_column_or_two(self, tmp_path, text, names):
        (tmp_path / 'list').write_bytes(text.encode())
        assert read_list(tmp_path / 'list') == names

    def test_reads_what_is_written(self, tmp_path):
        names = ['b', 'a', 'a\u2028b', 'c\x0cd']
        write_list(tmp_path / 'new' / 'list', names)
        assert read_list(tmp_path / 'new' / 'list') == names

    @pytest.mark.parametrize(
        ('content', 'problem'),
        [
            (None, 'no such file'),
            (b'\n \n', 'the list is empty'),
            (b'a\nb\na\n', 'a is listed twice'),
            (b'a.b\na.JPG\na\n', 'a is listed twice'),
            ('Straße'.encode('latin-1'), 'cannot be read'),
        ],
    )
    def test_what_is_no_list(self, tmp_path, content, problem):
        if content is not None:
            (tmp_path / 'list').write_bytes(content)
        with pytest.raises(UserError, match=f'list: {problem}'):
            read_list(tmp_path / 'list')


@pytest.mark.parametrize(
    ('name', 'image'),
    [
        ('a/b.PNG', 'a/b'),
        ('c.v2.jpg', 'c.v2'),
        ('d.jpg', 'd.jpg'),  # of d.jpg.jpg
        ('a/b.v2', None),  # not an extension: another image
        ('b', None),
    ],
)
def test_only_extensions_of_images_are_cut(name, image):
    assert find_listed(name, {'a/b': 0, 'c.v2': 1, 'd.jpg': 2, 'd': 3}) == image
