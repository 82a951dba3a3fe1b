import importlib.util

import pytest

from mmseg_cct.datasets.splits import draw_split, draw_voc_split
from mmseg_cct.utils.image_lists import read_list, write_list

NAMES = [f'image{index:02}' for index in range(20)]


@pytest.fixture(scope='module')
def tool(project_root):
    spec = importlib.util.spec_from_file_location(
        'make_splits', project_root / 'tools' / 'make_splits.py'
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def names_file(tmp_path):
    write_list(tmp_path / 'names.txt', NAMES)
    return str(tmp_path / 'names.txt')


def _read(folder, number):
    return tuple(read_list(folder / f'{number}_{part}.txt') for part in ('labeled', 'unlabeled'))


def test_from_a_list(tool, names_file, tmp_path, capsys):
    tool.main(['--list', names_file, '-n', '3', '8', '--seed', '5', '--out', str(tmp_path / 'out')])
    for number in (3, 8):
        assert _read(tmp_path / 'out', number) == draw_split(NAMES, number, seed=5)
    assert capsys.readouterr().out == (
        f'{tmp_path}/out/3_*.txt: 3 labelled, 17 not\n{tmp_path}/out/8_*.txt: 8 labelled, 12 not\n'
    )


def test_from_a_folder(tool, tmp_path):
    (tmp_path / 'images' / 'city').mkdir(parents=True)
    for name in NAMES:
        (tmp_path / 'images' / 'city' / f'{name}_leftImg8bit.png').touch()
    options = ['--suffix', '_leftImg8bit.png', '-n', '4', '--out', str(tmp_path)]
    tool.main(['--images', str(tmp_path / 'images'), *options])
    assert _read(tmp_path, 4) == draw_split([f'city/{name}' for name in NAMES], 4)


def test_labelled_images_are_drawn_among_those_with_a_mask(tool, tmp_path, capsys):
    for folder, names in (('images', NAMES), ('masks', NAMES[5:9])):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f'{name}.png').touch()
    options = ['--images', str(tmp_path / 'images'), '--masks', str(tmp_path / 'masks')]
    options += ['--out', str(tmp_path / 'out'), '-n']
    tool.main([*options, '2', '4'])
    assert _read(tmp_path / 'out', 4) == (NAMES[5:9], NAMES[:5] + NAMES[9:])
    labeled, unlabeled = _read(tmp_path / 'out', 2)
    assert labeled == draw_split(NAMES[5:9], 2).labeled
    assert sorted(labeled + unlabeled) == NAMES
    assert 'labelled images: 5; expected 1 to 4, the images to' in _fails(
        tool, capsys, *options, '5'
    )


def test_masks_of_another_suffix(tool, tmp_path, capsys):
    for name in ('images/a', 'images/b', 'masks/a_mask'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f'{name}.png').touch()
    options = ['--images', str(tmp_path / 'images'), '--masks', str(tmp_path / 'masks')]
    options += ['-n', '1', '--out', str(tmp_path)]
    error = _fails(tool, capsys, *options)
    assert error.endswith('images; expected --mask-suffix _mask.png\n')
    tool.main([*options, '--mask-suffix', '_mask.png'])
    assert _read(tmp_path, 1) == (['a'], ['b'])


@pytest.mark.parametrize(
    ('option', 'needed'),
    [('--masks', '--images'), ('--suffix', '--images'), ('--mask-suffix', '--masks')],
)
def test_an_option_without_the_folder_that_it_is_about(
    tool, names_file, tmp_path, capsys, option, needed
):
    options = ['--list', names_file, option, '.png', '-n', '2', '--out', str(tmp_path)]
    expected = f'error: {option}: has no {needed} beside it; expected the folder\n'
    assert _fails(tool, capsys, *options) == expected


def test_from_voc(tool, tmp_path):
    lists = tmp_path / 'ImageSets' / 'Segmentation'
    write_list(lists / 'train.txt', NAMES[:8])
    write_list(lists / 'val.txt', ['v'])
    write_list(lists / 'trainaug.txt', NAMES)
    tool.main(['--voc-root', str(tmp_path), '-n', '3', '8', '--out', str(tmp_path / 'out')])
    assert _read(tmp_path / 'out', 8) == (NAMES[:8], NAMES[8:])
    assert _read(tmp_path / 'out', 3) == draw_voc_split(NAMES[:8], NAMES, 3)


def test_voc_has_the_papers_numbers_by_default(tool, tmp_path):
    train = [f't{index:04}' for index in range(1464)]
    lists = tmp_path / 'ImageSets' / 'Segmentation'
    write_list(lists / 'train.txt', train)
    write_list(lists / 'val.txt', ['v'])
    write_list(lists / 'aug.txt', NAMES)
    tool.main(['--voc-root', str(tmp_path), '--out', str(tmp_path / 'out')])
    for number in (60, 100, 200, 300, 500, 800, 1000, 1464):
        labeled, unlabeled = _read(tmp_path / 'out', number)
        assert len(labeled) == number and set(labeled) <= set(train)
        assert len(unlabeled) == 1484 - number
    assert _read(tmp_path / 'out', 1464) == (train, NAMES)


def write_published(folder, kind, number, name):
    folder = folder / name if kind == 'unimatch' else folder
    folder.mkdir(exist_ok=True)
    prefix, ends = '', ('labeled', 'unlabeled')
    if kind == 'public':
        prefix, ends = f'{number}_train_', ('supervised', 'unsupervised')
    for end, names in zip(ends, (NAMES[:number], NAMES[number:])):
        lines = [f'JPEGImages/{n}.jpg SegmentationClass/{n}.png' for n in names]
        (folder / f'{prefix}{end}.txt').write_text('\n'.join(lines))


@pytest.mark.parametrize('kind', ['public', 'unimatch'])
@pytest.mark.parametrize(('options', 'numbers'), [([], [2, 5]), (['-n', '5'], [5])])
def test_from_published_lists(tool, tmp_path, kind, options, numbers):
    for name, number in (('1_10', 2), ('5', 5)):
        write_published(tmp_path, kind, number, name)
    out = tmp_path / 'out'
    tool.main([f'--from-{kind}', str(tmp_path), '--out', str(out), *options])
    assert len(list(out.iterdir())) == 2 * len(numbers)
    for number in numbers:
        assert _read(out, number) == (NAMES[:number], NAMES[number:])


def test_unimatch_number_that_is_not_there(tool, tmp_path, capsys):
    for part, name in (('labeled', 'a'), ('unlabeled', 'b')):
        (tmp_path / f'{part}.txt').write_text(f'JPEGImages/{name}.jpg SegmentationClass/{name}.png')
    arguments = ['--from-unimatch', str(tmp_path), '-n', '92', '--out', str(tmp_path / 'out')]
    error = _fails(tool, capsys, *arguments)
    assert error == f'error: -n 92: no such list in {tmp_path}; expected one of 1\n'


def _fails(tool, capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        tool.main(list(arguments))
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_no_number(tool, names_file, tmp_path, capsys):
    assert _fails(tool, capsys, '--list', names_file, '--out', str(tmp_path)) == (
        'error: -n: missing; expected one or more numbers of labelled images\n'
    )


def test_lists_that_differ_are_kept(tool, names_file, tmp_path, capsys):
    arguments = ['--list', names_file, '-n', '3', '--out', str(tmp_path)]
    tool.main(arguments)
    tool.main(arguments)
    error = _fails(tool, capsys, *arguments, '--seed', '1')
    assert 'exists and differs; expected a new folder or --force' in error
    assert _read(tmp_path, 3) == draw_split(NAMES, 3)
    tool.main([*arguments, '--seed', '1', '--force'])
    assert _read(tmp_path, 3) == draw_split(NAMES, 3, seed=1)


def test_a_list_in_another_encoding_is_one_line(tool, names_file, tmp_path, capsys):
    (tmp_path / '3_labeled.txt').write_bytes('Straße\n'.encode('latin-1'))
    arguments = ['--list', names_file, '-n', '3', '--out', str(tmp_path)]
    assert '3_labeled.txt: cannot be read (byte 0xdf' in _fails(tool, capsys, *arguments)
    tool.main([*arguments, '--force'])


def test_all_labeled_leaves_no_empty_list(tool, names_file, tmp_path, capsys):
    arguments = ['--list', names_file, '-n', '20', '--out', str(tmp_path)]
    tool.main(arguments)
    tool.main(arguments)
    assert not (tmp_path / '20_unlabeled.txt').exists()
    assert sorted(read_list(tmp_path / '20_labeled.txt')) == NAMES
    assert '20_unlabeled.txt: not written, because no image is left' in capsys.readouterr().out
    write_list(tmp_path / '20_unlabeled.txt', ['other'])
    assert 'exists and differs' in _fails(tool, capsys, *arguments)
    tool.main([*arguments, '--force'])
    assert not (tmp_path / '20_unlabeled.txt').exists()
