from itertools import pairwise

import pytest

from mmseg_cct.datasets.splits import (
    draw_split,
    draw_voc_split,
    read_list,
    read_public_splits,
    read_voc_lists,
    resolve_list,
    write_list,
)
from mmseg_cct.errors import UserError

NAMES = [f'image{index:02}' for index in range(20)]


def _touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


class TestDrawSplit:
    def test_parts_the_set(self):
        labeled, unlabeled = draw_split(NAMES, 6, seed=1)
        assert len(labeled) == 6
        assert sorted(labeled + unlabeled) == NAMES
        assert labeled == sorted(labeled) and unlabeled == sorted(unlabeled)

    def test_seed_decides(self):
        assert draw_split(NAMES, 6, seed=1) == draw_split(NAMES, 6, seed=1)
        assert draw_split(NAMES, 6, seed=1) != draw_split(NAMES, 6, seed=2)

    def test_never_changes(self):
        # Golden: the lists in configs/_base_/splits come from this.
        assert draw_split(NAMES, 4, seed=0).labeled == ['image01', 'image08', 'image18', 'image19']

    def test_smaller_is_part_of_larger(self):
        splits = [set(draw_split(NAMES, number).labeled) for number in range(1, 21)]
        assert all(smaller < larger for smaller, larger in pairwise(splits))

    def test_all_labeled(self):
        assert draw_split(NAMES, 20) == (NAMES, [])

    @pytest.mark.parametrize('number', [-1, 0, 21])
    def test_impossible_number(self, number):
        with pytest.raises(UserError, match=rf'labelled images: {number}; expected 1 to 20'):
            draw_split(NAMES, number)


class TestVoc:
    def test_full_train_list(self):
        split = draw_voc_split(NAMES[:5], NAMES, 5)
        assert split == (NAMES[:5], NAMES[5:])

    def test_fewer(self):
        labeled, unlabeled = draw_voc_split(NAMES[:5], NAMES, 3, seed=4)
        assert set(labeled) < set(NAMES[:5]) and len(labeled) == 3
        assert sorted(labeled + unlabeled) == NAMES

    def test_more_than_the_train_list(self):
        with pytest.raises(UserError, match='labelled images: 6; expected at most 5, the original'):
            draw_voc_split(NAMES[:5], NAMES, 6)

    @pytest.fixture
    def root(self, tmp_path):
        lists = tmp_path / 'VOC2012' / 'ImageSets' / 'Segmentation'
        write_list(lists / 'train.txt', NAMES[:3])
        write_list(lists / 'val.txt', NAMES[3:5])
        return tmp_path

    @pytest.mark.parametrize('inner', ['', 'VOC2012'])
    @pytest.mark.parametrize(
        ('name', 'names'), [('trainaug.txt', NAMES[:3] + NAMES[5:]), ('aug.txt', NAMES[5:])]
    )
    def test_reads_lists(self, root, inner, name, names):
        write_list(root / 'VOC2012' / 'ImageSets' / 'Segmentation' / name, names)
        assert read_voc_lists(root / inner) == (NAMES[:3], NAMES[:3] + NAMES[5:])

    def test_reads_the_folder_of_masks(self, root):
        _touch(root / 'VOC2012' / 'SegmentationClassAug', *(f'{name}.png' for name in NAMES))
        assert read_voc_lists(root) == (NAMES[:3], NAMES[:3] + NAMES[5:])

    def test_nothing_to_tell_trainaug(self, root):
        with pytest.raises(UserError, match=r'no trainaug\.txt or aug\.txt, and no folder .*Aug'):
            read_voc_lists(root)

    def test_no_train_list(self, tmp_path):
        with pytest.raises(UserError, match=r'train\.txt: no such file'):
            read_voc_lists(tmp_path)


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
        write_list(tmp_path / 'new' / 'list', NAMES)
        assert read_list(tmp_path / 'new' / 'list') == NAMES

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


class TestPublicSplits:
    @staticmethod
    def _write(root, name, stems):
        lines = [f'/JPEGImages/{s}.jpg /SegmentationClassAug/{s}.png' for s in stems]
        (root / name).write_text('\n'.join(lines))

    def test_reads_all_pairs(self, tmp_path):
        for number in (12, 3):
            self._write(tmp_path, f'{number}_train_supervised.txt', NAMES[:number])
            self._write(tmp_path, f'{number}_train_unsupervised.txt', NAMES[number:])
        (tmp_path / 'val_train_supervised.txt').touch()
        splits = read_public_splits(tmp_path)
        assert list(splits.items()) == [
            (3, (NAMES[:3], NAMES[3:])),
            (12, (NAMES[:12], NAMES[12:])),
        ]

    def test_half_a_pair(self, tmp_path):
        self._write(tmp_path, '3_train_supervised.txt', NAMES[:3])
        with pytest.raises(UserError, match=r'3_train_unsupervised\.txt: no such file'):
            read_public_splits(tmp_path)

    def test_none(self, tmp_path):
        with pytest.raises(UserError, match=r'no list of the public code; expected \{n\}_train'):
            read_public_splits(tmp_path)


class TestResolveList:
    def test_prefers_the_working_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        _touch(tmp_path, 'lists/a.txt')
        assert resolve_list('lists/a.txt') == str(tmp_path / 'lists' / 'a.txt')

    @pytest.mark.parametrize('name', ['', 'train.txt', '/nowhere/train.txt'])
    def test_leaves_others(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert resolve_list(name) == name


class TestCamVidLists:
    @pytest.mark.parametrize('number', [5, 20, 50, 100])
    def test_are_splits(self, number, project_root):
        folder = project_root / 'configs' / '_base_' / 'splits' / 'camvid'
        labeled = read_list(folder / f'{number}_labeled.txt')
        unlabeled = read_list(folder / f'{number}_unlabeled.txt')
        assert len(labeled) == number
        assert len(set(labeled) | set(unlabeled)) == 367

    @pytest.mark.parametrize('number', [5, 20, 50, 100])
    def test_are_those_of_seed_0(self, number, project_root, camvid_root):
        folder = project_root / 'configs' / '_base_' / 'splits' / 'camvid'
        split = draw_split(read_list(camvid_root / 'train.txt'), number, seed=0)
        assert read_list(folder / f'{number}_labeled.txt') == split.labeled
        assert read_list(folder / f'{number}_unlabeled.txt') == split.unlabeled
