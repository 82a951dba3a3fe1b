from itertools import pairwise

import pytest

from mmseg_cct.datasets.splits import draw_split
from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_lists import read_list

NAMES = [f'image{index:02}' for index in range(20)]


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
