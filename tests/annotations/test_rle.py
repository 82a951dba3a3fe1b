import numpy as np
import pytest
from exports import brush, runs
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mmseg_cct.annotations import rle
from mmseg_cct.errors import UserError

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=40))
MASK = np.random.default_rng(0).random((7, 5)) > 0.6


@given(MASKS, st.sampled_from('CF'))
def test_runs_along_rows_or_columns_are_unpacked_as_they_were_packed(mask, order):
    packed = rle.runs_of_mask(mask, order)
    assert packed == runs(mask.reshape(-1, order=order))
    assert np.array_equal(rle.mask_of_runs(packed, mask.shape[::-1], order), mask)


@given(MASKS, st.sampled_from([rle.brush_of_mask, brush]))
@example(np.ones((300, 300), bool), rle.brush_of_mask)  # longer than the longest run
def test_a_brush_is_unpacked_as_it_was_packed(mask, pack):
    assert np.array_equal(rle.brush_alpha(pack(mask), mask.shape[::-1]), mask)


def test_compressed_runs_are_those_of_pycocotools():
    y, x = np.mgrid[:50, :40]
    disc = (x - 20) ** 2 + (y - 25) ** 2 < 180
    # encode(disc)['counts'] of pycocotools 2.0.11
    text = 'd;7Y14L4M2N2N2N2O0O2O0O2O000000000001N101N101N2N2N2N3L4Lh8'
    assert np.array_equal(rle.mask_of_runs(rle.coco_counts(text), (40, 50), 'F'), disc)


@pytest.mark.parametrize(
    ('call', 'key'),
    [
        (lambda: rle.mask_of_runs([3, 3], (5, 7), 'C'), 'RLE'),
        (lambda: rle.coco_counts('a€'), 'RLE'),
        (lambda: rle.brush_alpha(brush(MASK), (5, 8)), 'brush'),
        (lambda: rle.brush_alpha(brush(MASK)[:40], (5, 7)), 'truncated brush RLE'),
    ],
)
def test_damaged_runs_are_refused(call, key):
    with pytest.raises(UserError) as raised:
        call()
    assert raised.value.problems[0].key == key
