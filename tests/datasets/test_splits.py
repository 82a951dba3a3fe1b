from itertools import pairwise

import pytest

from mmseg_cct.datasets.splits import (
    draw_split,
    read_public_splits,
    read_unimatch_splits,
)
from mmseg_cct.errors import UserError

NAMES = [f'2007_{index:06}' for index in range(20)]


class TestDrawSplit:
    def test_parts_the_set_by_the_seed(self):
        labeled, unlabeled = draw_split(NAMES, 6, seed=1)
        assert len(labeled) == 6 and sorted(labeled + unlabeled) == NAMES
        assert labeled == sorted(labeled) and unlabeled == sorted(unlabeled)
        assert (labeled, unlabeled) == draw_split(NAMES, 6, seed=1) != draw_split(NAMES, 6, seed=2)
        assert draw_split(NAMES, 20) == (NAMES, [])
        assert draw_split(NAMES[:5], 5, names=NAMES) == (NAMES[:5], NAMES[5:])

    def test_never_changes(self):
        # Golden: the lists in configs/_base_/splits come from this.
        assert draw_split(range(20), 4, seed=0).labeled == [1, 8, 18, 19]

    def test_smaller_is_part_of_larger(self):
        splits = [set(draw_split(NAMES, number).labeled) for number in range(1, 21)]
        assert all(smaller < larger for smaller, larger in pairwise(splits))


def voc_line(name):
    return f'JPEGImages/{name}.jpg SegmentationClass/{name}.png'


def cityscapes_line(name):
    stem = f'{name.split("_")[0]}/{name}'
    image, mask = f'{stem}_leftImg8bit.png', f'{stem}_gtFine_labelTrainIds.png'
    return f'leftImg8bit/train/{image} gtFine/train/{mask}'


def write(folder, labeled, unlabeled, line=voc_line, files='{}labeled.txt'):
    """Writes two lists like the originals, without a newline at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, names in (('', labeled), ('un', unlabeled)):
        (folder / files.format(part)).write_text('\n'.join(map(line, names)))


class TestPublicSplits:
    def test_reads_all_pairs(self, tmp_path):
        for number in (12, 3):
            files = f'{number}_train_{{}}supervised.txt'
            write(tmp_path, NAMES[:number], NAMES[number:], files=files)
        (tmp_path / 'val_train_supervised.txt').touch()
        splits = read_public_splits(tmp_path)
        assert [*splits.items()] == [(n, (NAMES[:n], NAMES[n:])) for n in (3, 12)]
        (tmp_path / '3_train_unsupervised.txt').unlink()
        for folder in (tmp_path, tmp_path / 'none'):
            with pytest.raises(UserError, match=f'^{folder}'):
                read_public_splits(folder)


class TestUniMatchSplits:
    def test_reads_all_partitions_by_number_or_one_by_its_folder(self, tmp_path):
        for number, name in ((12, '12'), (3, '3'), (2, '1_10')):
            write(tmp_path / name, NAMES[:number], NAMES[number:])
        write(tmp_path / 'u2pl_1_10', NAMES[5:7], NAMES[7:])
        (tmp_path / 'val.txt').write_text(voc_line('2007_999999'))
        splits = read_unimatch_splits(tmp_path)
        assert [*splits.items()] == [(n, (NAMES[:n], NAMES[n:])) for n in (2, 3, 12)]
        assert read_unimatch_splits(tmp_path / 'u2pl_1_10') == {2: (NAMES[5:7], NAMES[7:])}
        (tmp_path / '3' / 'unlabeled.txt').unlink()
        with pytest.raises(UserError, match=r'3/unlabeled\.txt: no such file'):
            read_unimatch_splits(tmp_path)

    def test_cityscapes_names_are_those_of_mmseg(self, tmp_path):
        write(tmp_path / '1_3', ['jena_000078_000019'], ['ulm_000000_000001'], cityscapes_line)
        split = ['jena/jena_000078_000019'], ['ulm/ulm_000000_000001']
        assert read_unimatch_splits(tmp_path) == {1: split}

    @pytest.mark.parametrize(
        ('lists', 'folder'),
        [
            ({}, ''),
            ({'3': (3, 2)}, '3'),  # an image in both lists
        ],
    )
    def test_bad_lists(self, tmp_path, lists, folder):
        for name, (number, start) in lists.items():
            write(tmp_path / name, NAMES[:number], NAMES[start:])
        with pytest.raises(UserError) as caught:
            read_unimatch_splits(tmp_path)
        assert [str(problem.key) for problem in caught.value.problems] == [str(tmp_path / folder)]
