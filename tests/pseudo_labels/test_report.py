import shutil
from pathlib import Path

import numpy as np
import pytest
from folders import save
from PIL import Image

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.pseudo_labels import make_pseudo_labels
from mmseg_cct.pseudo_labels.report import class_table, count, find_truths, read_truth
from mmseg_cct.pseudo_labels.settings import read_settings


@pytest.fixture
def counted(weak):
    """One image of 8 pixels, labels and truth written by hand."""
    settings = read_settings(weak.load())
    image = settings.images[0]
    labels = np.array([[0, 0, 1, 1], [255, 1, 2, 255]], np.uint8)
    truth = np.array([[0, 1, 1, 1], [1, 255, 1, 0]], np.uint8)
    save(weak.root / f'hand/{image.name}.png', labels)
    save(weak.root / f'masks/{image.name}.png', truth)
    return count([image], weak.root / 'hand', settings, find_truths(settings.segmentation))


def test_coverage_and_agreement_with_the_truth(counted):
    assert counted.pixels.tolist() == [2, 3, 1, 2]
    assert counted.images.tolist() == [1, 1, 1]
    # ground: 1 right of 2 labelled and 2 true, one of these ignored; thing: 2 of 2 and 5, one
    # ignored; other: 1 labelled, none true
    expected = np.array([[1 / 3, 1 / 2, 1 / 2], [2 / 5, 2 / 4, 2 / 2], [0, 0, 0]])
    np.testing.assert_allclose(counted.quality, expected)
    rows = class_table(counted, ('ground', 'thing', 'other')).rows
    assert rows[1] == ['thing', '1', '37.50', '40.0', '50.0', '100.0']
    assert rows[3:] == [
        ['ignored', '', '25.00', '', '', ''],
        ['mean', '', '', '24.4', '33.3', '50.0'],
    ]


def test_a_class_that_is_nowhere_has_no_value(weak, counted):
    settings = read_settings(weak.load())
    empty = count([], weak.root, settings, {})
    rows = class_table(empty, settings.classes).rows
    assert rows[1] == ['thing', '0', '0.00', *['–'] * 3]
    assert rows[-1] == ['mean', '', '', *['–'] * 3]
    counted.confusion[2] = 0  # no pixel is labelled with the last class
    assert class_table(counted, settings.classes).rows[-1][-1] == '75.0'


def test_truth_goes_through_msegs_mappings(weak):
    config = weak.load()
    config.pseudo_labels.segmentation.reduce_zero_label = True
    truths = find_truths(read_settings(config).segmentation)
    ids = read_mask(weak.root / 'masks/a.png').astype(int)
    expected = np.where(ids == 0, 255, ids - 1)
    assert np.array_equal(read_truth(truths[str(weak.images / 'a.jpg')]), expected)


@pytest.mark.parametrize('with_masks', [True, False])
def test_report_and_pictures(weak, with_masks):
    if not with_masks:
        shutil.rmtree(weak.root / 'masks')
    options = dict(with_crf=False, workers=0, num_pictures=3)
    make_pseudo_labels(weak.load(), weak.checkpoint, weak.out, **options)
    text = Path(weak.out, 'report.md').read_text(encoding='utf-8')
    assert text.startswith('# Pseudo labels of 4 images\n')
    assert f'the masks of {4 * with_masks} images' in text
    with Image.open(Path(weak.out, 'pictures.png')) as image:
        assert image.size == (630, 17 + 150 * (3 + with_masks))  # the images are 4:3
