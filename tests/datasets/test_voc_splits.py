import pytest

from mmseg_cct.datasets.voc_splits import draw_voc_split, read_public_splits, read_voc_lists
from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_lists import write_list

NAMES = [f'image{index:02}' for index in range(20)]


def _touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


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
