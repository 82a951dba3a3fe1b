"""A set to validate on has labels, and masks as large as its predictions."""

from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image
from trees import LABELED_PIPELINE

from mmseg_cct.errors import UserError
from mmseg_cct.preflight.evaluation_set import build_evaluation_set

KEY = 'val_dataloader.dataset'


def write_masks(tree, *masks):
    for name, ids in zip(tree.labeled_names, masks):
        Image.fromarray(np.resize(np.uint8(ids), (16, 24))).save(tree.mask(name))


def test_all_void(tree):
    write_masks(tree, [255], [255], [255])
    build_evaluation_set(tree.config('labeled'), 'test_dataloader.dataset')
    with pytest.raises(UserError) as caught:
        build_evaluation_set(tree.config('labeled'), KEY)
    assert str(caught.value) == (
        f'{KEY}: all 3 masks hold only ignored pixels; expected labelled pixels to validate on'
    )
    write_masks(tree, [255, 0])
    assert len(build_evaluation_set(tree.config('labeled'), KEY)) == 3


def test_a_crop_before_the_mask(tree):
    load, annotate, *_, pack = LABELED_PIPELINE
    for step, fits in (('RandomCrop', False), ('Resize', True)):
        size = dict(crop_size=(8, 8)) if step == 'RandomCrop' else dict(scale=(8, 8))
        pipeline = [load, dict(type=step, **size), annotate, pack]
        with nullcontext() if fits else pytest.raises(UserError, match='RandomCrop moves the'):
            build_evaluation_set(tree.config('labeled', pipeline=pipeline), KEY)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (None, f'^{KEY}: missing; expected a labelled data set$'),
        (dict(data_prefix=dict(img_path='none')), f'^{KEY}: .*none'),
    ],
)
def test_a_set_that_is_not_there(tree, settings, message):
    with pytest.raises(UserError, match=message):
        build_evaluation_set(settings and tree.config('labeled', **settings), KEY)
