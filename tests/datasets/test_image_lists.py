import json

import pytest

from mmseg_cct.datasets.image_lists import (
    check_annotations,
    find_listed,
    read_list,
    resolve_list,
    write_list,
)
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

    def test_twice_with_an_extension_and_without(self, tmp_path):
        (tmp_path / 'list').write_text('a.b\na.JPG\na\n')
        with pytest.raises(UserError, match=r'list: a\.JPG and a are the same image; expected'):
            read_list(tmp_path / 'list')

    def test_not_text(self, tmp_path):
        (tmp_path / 'list').write_bytes(b'\xff\xfe\x00\x81')
        with pytest.raises(UserError, match='list: cannot be read'):
            read_list(tmp_path / 'list')

    def test_byte_order_mark(self, tmp_path):
        (tmp_path / 'list').write_text('a\nb\n', encoding='utf-8-sig')
        assert read_list(tmp_path / 'list') == ['a', 'b']

    @pytest.mark.parametrize('encoding', ['latin-1', 'utf-16', 'utf-16-le'])
    def test_other_encodings(self, tmp_path, encoding):
        name = 'a' if encoding == 'utf-16-le' else 'Straße'
        (tmp_path / 'list').write_bytes(name.encode(encoding))
        with pytest.raises(UserError, match=r'list: cannot be read .*; expected .*saved as UTF-8$'):
            read_list(tmp_path / 'list')

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


class TestCheckAnnotations:
    def check(self, tmp_path, **changes):
        entry = dict(img_path='a.png', gt_label=[0, 1])
        content = dict(metainfo=dict(classes=['x', 'y']), data_list=[entry]) | changes
        (tmp_path / 'labels.json').write_text(json.dumps(content))
        check_annotations(tmp_path / 'labels.json')

    def test_takes_what_fits(self, tmp_path):
        self.check(tmp_path)
        self.check(tmp_path, data_list=[dict(img_path='a.png', gt_label=[])])

    @pytest.mark.parametrize(
        ('changes', 'message'),
        [
            (dict(metainfo=None), r'labels\.json: no metainfo; expected image-level labels'),
            (dict(metainfo={}), r'metainfo\.classes=None: expected the names of the classes'),
            (dict(metainfo=dict(classes=[])), r'metainfo\.classes=\[\]: expected the names of'),
            (dict(metainfo=dict(classes=[1])), r'metainfo\.classes=\[1\]: expected the names of'),
            (dict(data_list={}), r'labels\.json: no data_list; expected image-level labels'),
            (dict(data_list=['a.png']), r'data_list\[0\]\.img_path=None: expected a path'),
            (dict(data_list=[dict(img_path=3)]), r'data_list\[0\]\.img_path=3: expected a path'),
            (
                dict(data_list=[dict(img_path='a', gt_label=1)]),
                r'data_list\[0\]\.gt_label=1: expected a list of class ids',
            ),
        ],
    )
    def test_malformed(self, tmp_path, changes, message):
        with pytest.raises(UserError, match=message):
            self.check(tmp_path, **changes)

    @pytest.mark.parametrize('label', [-1, 2, 'x', 0.5, True])
    def test_no_class_id(self, tmp_path, label):
        with pytest.raises(UserError, match=r'gt_label=\[.*is no class id; expected 0 to 1$'):
            self.check(tmp_path, data_list=[dict(img_path='a', gt_label=[label])])

    @pytest.mark.parametrize('text', ['', '{"metainfo": {', '[' * 100000])
    def test_no_json(self, tmp_path, text):
        (tmp_path / 'labels.json').write_text(text)
        with pytest.raises(UserError, match=r'labels\.json: is no JSON \(.*\); expected'):
            check_annotations(tmp_path / 'labels.json')

    def test_missing(self, tmp_path):
        with pytest.raises(UserError, match=r'labels\.json: no such file; expected the image-lev'):
            check_annotations(tmp_path / 'labels.json')
