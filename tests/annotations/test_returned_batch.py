import numpy as np
import pytest
from exports import write
from folders import save
from importing import import_masks, labelme

from mmseg_cct.annotations.importer import MARKS, PREDICTED, ReturnedBatch


@pytest.mark.parametrize(
    ('mark', 'is_corrected', 'is_label'),
    [
        (None, False, False), (None, True, True), ('done', False, True), ('skip', True, False),
    ],
)  # fmt: skip
def test_only_what_somebody_corrected_or_marked_done_is_a_label(
    tmp_path, photos, mark, is_corrected, is_label
):
    export, options = tmp_path / 'x/1.json', dict(images=photos, undrawn='background')
    labelme(export, imagePath='a/1.jpg')
    import_masks(export, tmp_path / 'first', **options)
    (tmp_path / 'first/masks').rename(tmp_path / PREDICTED)
    if mark:
        write(tmp_path / MARKS, {'a/1.jpg': mark})
    if is_corrected:
        labelme(export, imagePath='a/1.jpg', points=[[0, 0], [8, 0], [8, 7], [0, 7]])
    done = import_masks(export, tmp_path / 'out', **options, batch=tmp_path)
    assert done.masks == is_label and (tmp_path / 'out/masks').exists() == is_label
    assert [list(images) for images in done.notes.values()] == [['a/1.jpg']] * (not is_label)


@pytest.mark.parametrize(
    ('mask', 'undrawn', 'is_label'),
    [
        ([0, 1], (), False),
        ([0, 255], (), True),  # somebody erased what is wrong
        ([255, 1], (), True),
        ([255, 1], (0,), False),  # where an untouched export leaves class 0 undrawn
        ([255, 255], (0,), True),
    ],
)
def test_an_erased_part_is_a_correction(tmp_path, mask, undrawn, is_label):
    save(tmp_path / PREDICTED / 'a.png', np.array([[0, 1]], np.uint8))
    objection = ReturnedBatch(tmp_path, undrawn).objection('a', np.array([mask], np.uint8))
    assert (objection == '') == is_label


def test_marks_of_a_first_batch_count_though_nothing_is_predicted(tmp_path):
    (tmp_path / PREDICTED).mkdir()
    write(tmp_path / MARKS, {'a/1.jpg': 'skip', 'a/2.jpg': 'done'})
    batch, mask = ReturnedBatch(tmp_path), np.zeros((1, 2), np.uint8)
    assert [bool(batch.objection(name, mask)) for name in ('a/1', 'a/2', 'a/3')] == [1, 0, 0]
