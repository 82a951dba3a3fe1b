"""A model of no weights whose classes are the images' values: what matters is the stream."""

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.apis.predictor import Predictor, batches_of_one_size


class Values(torch.nn.Module):
    def __init__(self, **load):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        load = dict(dict(type='LoadImageFromFile'), **load)
        pipeline = [load, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
        self.cfg = Config(dict(test_pipeline=pipeline, default_scope='mmseg'))

    def test_step(self, data):
        return [
            SegDataSample(pred_sem_seg=PixelData(data=image[:1].long())) for image in data['inputs']
        ]


def test_images_come_in_order_with_their_classes_and_unreadable_ones_between(tmp_path):
    paths = [tmp_path / f'{name}.png' for name in ('one', 'broken', 'two')]
    for path, (value, *size) in zip(paths, ((3, 4, 5), (0, 1, 1), (7, 2, 2))):
        cv2.imwrite(str(path), np.full((*size, 3), value, np.uint8))
    paths[1].write_bytes(b'')
    first, broken, last = Predictor(Values())(paths)
    assert [first.path, broken.path, last.path] == paths
    assert first.labels.dtype == np.uint8 and (first.labels == 3).all()
    assert first.image.shape == (4, 5, 3) and last.labels.shape == (2, 2)
    assert broken.error is not None and broken.labels is None


@pytest.mark.parametrize(
    'error',
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory"), KeyError('other')],
)
def test_an_image_that_does_not_fit_the_memory_is_named_and_the_others_go_on(tmp_path, error):
    paths = [tmp_path / 'large.png', tmp_path / 'small.png']
    for path, size in zip(paths, ((9, 9), (2, 2))):
        cv2.imwrite(str(path), np.full((*size, 3), 1, np.uint8))

    class Small(Values):
        def test_step(self, data):
            if data['inputs'][0].shape[-1] > 5:
                raise error
            return super().test_step(data)

    if isinstance(error, KeyError):
        with pytest.raises(KeyError):
            list(Predictor(Small())(paths))
        return
    large, small = Predictor(Small())(paths)
    assert large.error.problems[0].key == paths[0]
    assert large.labels is None and small.labels.shape == (2, 2)


def test_a_gpu_takes_neighbours_of_one_size_together():
    loaded = [
        (None, {'inputs': torch.zeros(3, *size)} if size else {})
        for size in ((4, 5), (4, 5), (4, 5), (5, 4), None, (5, 4), (9, 9))
    ]
    sizes = [len(batch) for batch in batches_of_one_size(loaded, 40)]
    assert sizes == [2, 1, 1, 1, 1, 1]
    assert all(len(batch) == 1 for batch in batches_of_one_size(loaded, 0))
