import numpy as np
import pytest
from folders import save

from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.datasets.folder_summary import describe_folder
from mmseg_cct.datasets.folder_summary import summarize_folder as _summarize_folder
from mmseg_cct.errors import UserError

CLASSES = ('x', 'y', 'z')


def summarize_folder(root, classes, *suffix):
    return _summarize_folder(root, classes, find_images(root / 'images'), *suffix)


@pytest.fixture
def root(tmp_path):
    for name, mask in (('a', [[0, 0, 2, 255]]), ('more/b', [[2, 2, 2, 0]]), ('c', None)):
        save(tmp_path / f'images/{name}.png', np.zeros((1, 4, 3), np.uint8))
        if mask:
            save(tmp_path / f'masks/{name}.png', np.array(mask, np.uint8))
    return tmp_path


def test_images_masks_and_pixels_are_counted(root):
    (root / 'masks' / 'a.png').rename(root / 'masks' / 'a.PNG')
    summary = summarize_folder(root, CLASSES)
    assert list(summary.labels) == ['a', 'more/b']
    assert (summary.unlabeled, summary.validation, summary.size) == (1, {}, (4, 1))
    assert summary.pixels.tolist() == [3, 0, 4] and summary.ignored == 1
    assert summary.labels == {'a': {0, 2, 255}, 'more/b': {0, 2}}
    assert '| z | 57.1 % | 2 | 0 |' in describe_folder(summary, CLASSES).splitlines()


@pytest.mark.parametrize(('ignored', 'partly'), [(2, []), (3, ['a']), (4, ['a'])])
def test_images_whose_masks_are_mostly_ignored_are_named(root, ignored, partly):
    save(root / 'masks/a.png', np.array([[255] * ignored + [0] * (4 - ignored)], np.uint8))
    assert summarize_folder(root, CLASSES).partly_labeled == partly


def test_validation_images_are_counted(root):
    for folder in ('images', 'masks'):
        (root / 'val' / folder).mkdir(parents=True)
        (root / folder / 'a.png').rename(root / 'val' / folder / 'a.png')
    summary = summarize_folder(root, CLASSES)
    assert (list(summary.labels), summary.unlabeled) == (['more/b'], 1)
    assert summary.validation == {'a': {0, 2, 255}}
    (root / 'val' / 'images' / 'd.png').write_bytes((root / 'images' / 'c.png').read_bytes())
    with pytest.raises(UserError, match=r'val/images/d\.png: '):
        summarize_folder(root, CLASSES)


def test_what_does_not_fit_is_named(root):
    def refused(classes=CLASSES):
        with pytest.raises(UserError) as caught:
            summarize_folder(root, classes)
        return str(caught.value.problems[0].key)

    mask = root / 'masks/a.png'
    assert refused(CLASSES[:2]) == str(mask)  # an id that is no class
    save(mask, np.zeros((4, 1), np.uint8))
    assert refused() == str(mask)  # of another size
    (root / 'images/a.png').unlink()
    assert refused() == str(mask)  # without an image
    (root / 'masks').rename(root / 'other')
    assert refused() == str(root / 'masks')
    (root / 'masks').mkdir()
    assert refused() == str(root / 'masks')  # empty


@pytest.mark.parametrize('dirs', [('img_dir', 'ann_dir'), ('train/images', 'train/labels')])
def test_other_layouts_are_read(root, dirs):
    for name, new in zip(('images', 'masks'), dirs):
        (root / new).parent.mkdir(exist_ok=True)
        (root / name).rename(root / new)
    summary = _summarize_folder(root, CLASSES, find_images(root / dirs[0]))
    assert list(summary.labels) == ['a', 'more/b']
