import cv2
import numpy as np
import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.labelling import first_batch as module
from mmseg_cct.labelling.first_batch import first_batch
from mmseg_cct.labelling.next_batch import BatchRequest


@pytest.fixture
def photos(tmp_path):
    """Twelve frames, of which every third is red and the others are grey."""
    folder = tmp_path / 'photos'
    (folder / 'drive').mkdir(parents=True)
    rng = np.random.default_rng(0)
    for index in range(12):
        pixels = rng.integers(90, 110, (40, 60, 3), np.uint8)
        pixels[..., 2] += 120 * (index % 3 == 0)
        cv2.imwrite(str(folder / f'drive/frame_{index}.png'), pixels)
    return folder


@pytest.fixture
def encoded(monkeypatch):
    """Encodes by colour, and counts the images."""
    count = []

    def encode(picture):
        count.append(picture)
        return cv2.resize(picture, (8, 6)).astype(np.float32)

    monkeypatch.setattr(module, 'load_encoder', lambda *_: encode)
    return count


@pytest.fixture
def choose(photos, tmp_path, encoded):
    def choose(out='out', **options):
        options = dict(dict(images=str(photos), number=4), **options)
        return first_batch(BatchRequest(str(tmp_path / out), **options), dict(backbone='any'))

    return choose


def numbers(batch):
    return [int(image.name.stem.split('_')[1]) for image in batch.images]


def test_a_batch_is_spread_over_the_names_and_like_the_pool(choose, photos, tmp_path):
    batch = choose(format='coco')
    chosen = numbers(batch)
    assert [number // 3 for number in chosen] == [0, 1, 2, 3]  # natural order: 2 before 10
    assert sum(number % 3 == 0 for number in chosen) in (1, 2)  # a third is red
    files = sorted((tmp_path / 'out/images/drive').iterdir())
    assert len(files) == 4
    assert all(file.read_bytes() == (photos / 'drive' / file.name).read_bytes() for file in files)
    assert (tmp_path / 'out/review.html').read_text().count('class="case"') == 4
    assert batch.note == '4 of 12 images' and batch.failed == []
    text = (tmp_path / 'out/coco.json').read_text()
    assert all(f'"{image.name.as_posix()}"' in text for image in batch.images)
    assert numbers(choose('again')) == chosen
    with pytest.raises(UserError, match='holds a batch already'):
        choose()


@pytest.mark.parametrize(
    ('table', 'options'),
    [
        (None, ['--rest', 'background']),
        ('{"classes": ["road", "sky"]}', ['--rest', 'ignore']),
        ('{"classes": ["background", "sky"]}', ['--rest', 'background']),
        ('{"classes": ["road", "sky"], "rest": "background"}', []),
    ],
)
def test_what_follows_adds_no_class_to_named_ones(choose, photos, tmp_path, table, options):
    images = photos.rename(tmp_path / 'images')
    if table:
        (tmp_path / 'classes.json').write_text(table)
    by_hand, command, _ = choose(images=str(images), format='labelme').following
    batch = ['--batch', str(tmp_path / 'out')]
    assert command.split('EXPORT ')[1].split() == [*batch, *options, '--out', str(tmp_path)]
    assert str(tmp_path / 'masks') in by_hand
    assert (tmp_path / 'out/labelme/labels.txt').exists() == bool(table)


def test_without_weights_names_are_evenly_spaced(choose, monkeypatch):
    def fail(*_):
        raise UserError('mmcls://x', 'could not be downloaded')

    monkeypatch.setattr(module, 'load_encoder', fail)
    batch = choose()
    assert numbers(batch) == [1, 4, 7, 10]
    assert 'could not be downloaded' in batch.note and '\n' not in batch.note


@pytest.mark.parametrize('fails', [False, True])
def test_fewer_images_than_asked_for_are_all_chosen(choose, photos, fails, monkeypatch):
    for path in sorted(photos.rglob('*.png'))[1:]:
        path.unlink()
    if fails:
        monkeypatch.setattr(module, '_MOST', 1)
    batch = choose()
    assert numbers(batch) == [0] and batch.note == '1 of 1 image'


def test_unreadable_images_are_named_and_left_out(choose, photos):
    for number in (0, 7):
        (photos / f'drive/frame_{number}.png').write_bytes(b'no image')
    batch = choose(number=12)
    assert len(batch.images) == 10 and not {0, 7} & set(numbers(batch))
    assert len(batch.failed) == 2 and 'frame_0.png' in batch.failed[0]
    for path in photos.rglob('*.png'):
        path.write_bytes(b'no image')
    with pytest.raises(UserError, match='--images'):
        choose('none')


def test_a_large_folder_is_sampled(choose, monkeypatch, encoded):
    monkeypatch.setattr(module, '_MOST', 5)
    batch = choose()
    assert len(encoded) == 10  # a first look, and the features
    assert '5' in batch.note and '12' in batch.note


def test_folders_are_left_out(choose, photos, tmp_path):
    first = choose(number=8)
    second = choose('second', number=8, without=[str(tmp_path / 'out/images')])
    assert not set(numbers(first)) & set(numbers(second)) and len(second.images) == 4
    with pytest.raises(UserError, match='no candidates'):
        choose('third', without=[str(photos)])


@pytest.mark.parametrize(
    ('way', 'option'),
    [
        (['--images', 'photos'], ['--cfg-options', 'a=1']),
        (['data'], ['--seed', '1']),
        (['work_dir'], ['--weights', 'weights.pth']),
    ],
)
def test_an_option_that_would_not_be_used_is_refused(tmp_path, refused, monkeypatch, way, option):
    monkeypatch.chdir(tmp_path)
    for folder in ('photos', 'data/images', 'work_dir'):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / 'weights.pth').touch()
    assert f'{option[0]}: ' in refused('next_batch', *way, '--out', 'x', *option)
