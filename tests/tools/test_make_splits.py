import pytest
from world import run_tool

from mmseg_cct.datasets.files.image_files import read_list, write_list
from mmseg_cct.datasets.splits import draw_split

NAMES = [f'image{index:02}' for index in range(20)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_list(tmp_path / 'names.txt', NAMES)
    return tmp_path


@pytest.fixture
def fails(folder, refused):
    return lambda *arguments: refused('make_splits', *arguments, '--out', 'out')


def make(*arguments):
    run_tool('make_splits', *arguments, '--out', 'out')


def lists(folder, number):
    return tuple(
        read_list(folder / 'out' / f'{number}_{part}.txt') for part in ('labeled', 'unlabeled')
    )


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_from_a_list(folder):
    touch(folder, 'out/.123-abcdef.part')  # of a run that was killed
    make('--list', 'names.txt', '-n', 3, 8, '--seed', 5)
    for number in (3, 8):
        assert lists(folder, number) == draw_split(NAMES, number, seed=5)
    assert len(list((folder / 'out').iterdir())) == 4


def test_labelled_images_are_drawn_among_those_with_a_mask(folder, fails):
    touch(folder, *(f'images/{name}.png' for name in NAMES))
    touch(folder, *(f'masks/{name}_mask.png' for name in NAMES[5:9]))
    options = ('--images', 'images', '--masks', 'masks', '-n')
    assert fails(*options, 4).endswith('expected NAME.png\n')
    options = ('--mask-suffix', '_mask.png', *options)
    make(*options, 2, 4)
    assert lists(folder, 4) == (NAMES[5:9], NAMES[:5] + NAMES[9:])
    assert lists(folder, 2)[0] == draw_split(NAMES[5:9], 2).labeled
    assert 'labelled images: 5' in fails(*options, 5)


def test_from_voc_by_default_with_the_papers_numbers(folder):
    numbers = (60, 100, 200, 300, 500, 800, 1000, 1464)
    train = [f't{index:04}' for index in range(numbers[-1])]
    for name, names in dict(train=train, trainaug=NAMES, val=['v']).items():
        write_list(folder / 'ImageSets' / 'Segmentation' / f'{name}.txt', names)
    make('--voc-root', '.')
    assert len(list((folder / 'out').iterdir())) == 2 * len(numbers)
    for number in numbers:
        assert lists(folder, number) == draw_split(train, number, names=train + NAMES)
    assert lists(folder, numbers[-1]) == (train, NAMES)


def test_lists_that_differ_are_kept(folder, fails):
    arguments = ('--list', 'names.txt', '-n', 3)
    for _ in range(2):
        make(*arguments)
    assert '3_labeled.txt: exists' in fails(*arguments, '--seed', 1)
    assert lists(folder, 3) == draw_split(NAMES, 3)
    make(*arguments, '--seed', 1, '--force')
    assert lists(folder, 3) == draw_split(NAMES, 3, seed=1)
