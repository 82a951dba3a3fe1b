import pytest

from mmseg_cct.datasets.unimatch_splits import read_unimatch_splits
from mmseg_cct.errors import UserError

NAMES = [f'2007_{index:06}' for index in range(20)]


def voc_line(name):
    return f'JPEGImages/{name}.jpg SegmentationClass/{name}.png'


def cityscapes_line(name):
    city = name.split('_')[0]
    return (
        f'leftImg8bit/train/{city}/{name}_leftImg8bit.png '
        f'gtFine/train/{city}/{name}_gtFine_labelTrainIds.png'
    )


def write(folder, labeled, unlabeled, line=voc_line):
    folder.mkdir(parents=True)
    for part, names in (('labeled', labeled), ('unlabeled', unlabeled)):
        # like the originals, without a newline at the end
        (folder / f'{part}.txt').write_text('\n'.join(map(line, names)))


def test_reads_all_partitions_by_number(tmp_path):
    for number, name in ((12, '12'), (3, '3'), (2, '1_10')):
        write(tmp_path / name, NAMES[:number], NAMES[number:])
    write(tmp_path / 'u2pl_1_10', NAMES[5:7], NAMES[7:])
    (tmp_path / 'val.txt').write_text(voc_line('2007_999999'))
    assert list(read_unimatch_splits(tmp_path).items()) == [
        (number, (NAMES[:number], NAMES[number:])) for number in (2, 3, 12)
    ]


def test_reads_one_partition_whatever_its_name(tmp_path):
    write(tmp_path / 'u2pl_1_10', NAMES[5:7], NAMES[7:])
    assert read_unimatch_splits(tmp_path / 'u2pl_1_10') == {2: (NAMES[5:7], NAMES[7:])}


def test_cityscapes_names_are_those_of_mmseg(tmp_path):
    names = ['jena_000078_000019', 'hamburg_000000_044251', 'bochum_000000_020776']
    write(tmp_path / '1_3', names[:1], names[1:], cityscapes_line)
    assert read_unimatch_splits(tmp_path) == {
        1: (
            ['jena/jena_000078_000019'],
            ['hamburg/hamburg_000000_044251', 'bochum/bochum_000000_020776'],
        )
    }


def test_none(tmp_path):
    with pytest.raises(UserError, match=r'no list of UniMatch; expected labeled\.txt and unlabel'):
        read_unimatch_splits(tmp_path)


def test_half_a_pair(tmp_path):
    write(tmp_path / '3', NAMES[:3], NAMES[3:])
    (tmp_path / '3' / 'unlabeled.txt').unlink()
    with pytest.raises(UserError, match=r'3/unlabeled\.txt: no such file'):
        read_unimatch_splits(tmp_path)


def test_an_image_in_both_lists(tmp_path):
    write(tmp_path / '3', NAMES[:3], NAMES[2:])
    with pytest.raises(UserError, match='3: 2007_000002 is in both lists; expected it in one'):
        read_unimatch_splits(tmp_path)


def test_two_partitions_of_a_number(tmp_path):
    for name in ('3', '1_6'):
        write(tmp_path / name, NAMES[:3], NAMES[3:])
    with pytest.raises(UserError, match=r'3: 3 labelled images, as many as in .*1_6; expected one'):
        read_unimatch_splits(tmp_path)
