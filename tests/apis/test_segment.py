"""A model of no weights whose classes are the images' values: what matters is the stream."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.apis import segment as module
from mmseg_cct.apis.segment import segment
from mmseg_cct.errors import UserError


class Values(torch.nn.Module):
    def __init__(self, *steps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        load = dict(type='LoadImageFromFile')
        pipeline = [load, *steps, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
        self.cfg = Config(dict(test_pipeline=pipeline, default_scope='mmseg'))
        self.batches = []

    def test_step(self, data):
        self.batches.append([tuple(image.shape[1:]) for image in data['inputs']])
        return [
            SegDataSample(pred_sem_seg=PixelData(data=image[:1].long())) for image in data['inputs']
        ]


def read(key):
    if key is None:
        raise OSError('broken')
    value, height, width = key
    return np.full((height, width, 3), value, np.uint8)


def test_images_come_in_order_with_their_classes_and_unreadable_ones_between():
    keys = [(3, 4, 5), None, (7, 2, 2)]
    first, broken, last = segment(Values(), keys, read)
    assert [first.key, broken.key, last.key] == keys
    assert first.labels.dtype == np.uint8 and (first.labels == 3).all()
    assert first.image.shape == (4, 5, 3) and last.labels.shape == (2, 2)
    assert str(broken.error) == 'broken' and broken.labels is None


def test_an_image_of_which_resizing_leaves_no_row_is_one_that_cannot_be_read():
    model = Values(dict(type='Resize', scale=(8, 8), keep_ratio=True))
    long, square = segment(model, [(1, 2, 300), (2, 4, 4)], read)
    assert str(long.error) == '300×2 pixels; expected sides that the test pipeline can resize'
    assert (square.labels == 2).all()


def test_a_pipeline_that_gives_no_inputs_is_an_error():
    model = Values()
    del model.cfg.test_pipeline[-1]
    with pytest.raises(UserError, match='test_pipeline: gives no inputs; expected PackSegInputs'):
        list(segment(model, [(1, 4, 4)], read))


def test_a_gpu_takes_neighbours_of_one_size_together(monkeypatch):
    monkeypatch.setattr(module, '_PIXELS_AT_ONCE', 40)
    loaded = [
        (None, {'inputs': torch.zeros(3, *size)} if size else {})
        for size in ((4, 5), (4, 5), (4, 5), (5, 4), None, (5, 4), (9, 9))
    ]
    sizes = [len(batch) for batch in module._batches(loaded, grouped=True)]
    assert sizes == [2, 1, 1, 1, 1, 1]
    assert all(len(batch) == 1 for batch in module._batches(loaded, grouped=False))


def test_an_error_at_the_first_image_is_the_configs_mistake_and_later_ones_are_not():
    model = Values(dict(type='LoadBiomedicalData'))  # of a file that is not named
    with pytest.raises(UserError, match='fails at the first image'):
        list(segment(model, [None, (1, 4, 4)], read))
    model = Values()
    model.test_step = lambda data: (
        SimpleNamespace() if model.batches else Values.test_step(model, data)
    )
    with pytest.raises(TypeError):
        list(segment(model, [(1, 4, 4)] * 2, read))
