import re

import cv2
import numpy as np
import pytest
from mmseg.datasets.transforms import LoadAnnotations

from mmseg_cct.datasets.files.labels import check_classes, check_mask
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    'classes', [('a', 'a'), 'background', (), 3, ('crack',), list(map(str, range(256)))]
)
def test_names_that_do_not_fit_are_one_line(classes):
    with pytest.raises(UserError, match=r'^classes') as error:
        check_classes(classes)
    assert '\n' not in str(error.value)
    check_classes(['background', *map(str, range(254))])  # as many as masks can hold


@pytest.mark.parametrize('dtype', [np.uint8, np.int32])
@pytest.mark.parametrize('reduce_zero_label', [False, True])
@pytest.mark.parametrize('label_map', [None, {0: 4, 5: 1, 9: 255, 200: 255}])
def test_unknown_ids_are_those_that_loading_leaves_outside(dtype, reduce_zero_label, label_map):
    ids = np.array([[0, 1, 2, 3, 4], [5, 9, 200, 254, 255]], dtype)
    png = cv2.imencode('.png', ids.astype(np.uint8))[1].tobytes()
    results = dict(seg_map_path='mask.png', label_map=label_map, seg_fields=[])
    results['reduce_zero_label'] = reduce_zero_label
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('mmengine.fileio.get', lambda *_, **__: png)
        loaded = LoadAnnotations()(results)['gt_seg_map']
    expected = ids[(loaded >= 3) & (loaded != 255)].tolist()
    assert unknown_ids(ids, 3, label_map, reduce_zero_label) == sorted(expected)[:5]


def unknown_ids(ids, num_classes, label_map=None, reduce_zero_label=False):
    """The first five ids that the message names."""
    try:
        check_mask('x', ids, num_classes, label_map=label_map, reduce_zero_label=reduce_zero_label)
    except UserError as error:
        (named,) = re.findall(r'label id (.*?)(?: and more)? outside', str(error))
        return [int(one) for one in named.split(', ')]
    return []


def test_boolean_masks_have_two_ids_and_negative_ones_are_unknown():
    assert unknown_ids(np.array([[True, False]]), 2) == []
    assert unknown_ids(np.array([[True, False]]), 1) == [1]
    assert unknown_ids(np.array([[-1, 0]], np.int32), 2) == [-1]
