"""A model of no weights whose classes are the images' values: what matters is the stream."""

import cv2
import numpy as np
import pytest
import torch
from mmcv.transforms import LoadImageFromFile
from mmengine.config import Config
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from PIL import Image

from mmseg_cct.apis import predictor as module
from mmseg_cct.apis.predictor import Predictor
from mmseg_cct.errors import UserError


class Values(torch.nn.Module):
    def __init__(self, *steps, **load):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        load = dict(dict(type='LoadImageFromFile'), **load)
        pipeline = [load, *steps, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
        self.cfg = Config(dict(test_pipeline=pipeline, default_scope='mmseg'))

    def test_step(self, data):
        return [
            SegDataSample(pred_sem_seg=PixelData(data=image[:1].long())) for image in data['inputs']
        ]


@pytest.fixture
def drawn(tmp_path):
    """Draws images of one value: the paths of (value, height, width)."""

    def draw(*images):
        paths = [tmp_path / f'{index}.png' for index in range(len(images))]
        for path, (value, height, width) in zip(paths, images):
            cv2.imwrite(str(path), np.full((height, width, 3), value, np.uint8))
        return paths

    return draw


def test_images_come_in_order_with_their_classes_and_unreadable_ones_between(drawn, tmp_path):
    one, two = drawn((3, 4, 5), (7, 2, 2))
    (tmp_path / 'broken.png').write_bytes(b'')
    paths = [one, tmp_path / 'broken.png', two]
    first, broken, last = Predictor(Values())(paths)
    assert [first.path, broken.path, last.path] == paths
    assert first.labels.dtype == np.uint8 and (first.labels == 3).all()
    assert first.image.shape == (4, 5, 3) and last.labels.shape == (2, 2)
    assert broken.error is not None and broken.labels is None


def test_a_pipeline_that_gives_no_inputs_is_an_error(drawn):
    model = Values()
    del model.cfg.test_pipeline[-1]
    with pytest.raises(UserError) as error:
        list(Predictor(model)(drawn((1, 4, 4))))
    assert error.value.problems[0].key == 'test_pipeline'


def test_images_are_read_as_by_the_test_pipeline(tmp_path):
    """By hand: MMSeg's loader, of an image that an EXIF tag turns."""
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(pixels).save(tmp_path / 'a.png', exif=turned)
    load = dict(color_type='color_ignore_orientation')
    expected = LoadImageFromFile(**load)(dict(img_path=str(tmp_path / 'a.png')))
    predictor = Predictor(Values(**load))
    assert np.array_equal(predictor.read(tmp_path / 'a.png'), expected['img'])


def test_a_gpu_takes_neighbours_of_one_size_together(monkeypatch):
    monkeypatch.setattr(module, '_PIXELS_AT_ONCE', 40)
    loaded = [
        (None, {'inputs': torch.zeros(3, *size)} if size else {})
        for size in ((4, 5), (4, 5), (4, 5), (5, 4), None, (5, 4), (9, 9))
    ]
    sizes = [len(batch) for batch in module._batches(loaded, grouped=True)]
    assert sizes == [2, 1, 1, 1, 1, 1]
    assert all(len(batch) == 1 for batch in module._batches(loaded, grouped=False))
