"""Any channels of an image, scaled to the range of 8 bits."""

import numpy as np
import pytest
from mmseg.registry import TRANSFORMS
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.transforms import IgnoreNodata, LoadChannels
from mmseg_cct.errors import UserError


def load_channels(**settings):
    return TRANSFORMS.build(dict(type='LoadChannels', **settings))


def test_the_chosen_channels_are_loaded_in_their_order(tmp_path):
    pixels = pixels_of(4)  # of 16 bits
    (tmp_path / 'a.tif').write_bytes(tiff_bytes(pixels, 2, extra=(0,)))
    loader = load_channels(channels=(3, 0), value_range=(0, 65535))
    loaded = loader(dict(img_path=str(tmp_path / 'a.tif'), kept=1))
    expected = pixels[..., [3, 0]] / np.float32(257)
    np.testing.assert_allclose(loaded['img'], expected, atol=1e-3)
    assert loaded['img_shape'] == loaded['ori_shape'] == pixels.shape[:2] and loaded['kept'] == 1


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / 'a.tif').write_bytes(b'no image')
    with pytest.raises(UserError, match=rf'^{tmp_path}/a\.tif: cannot be read'):
        load_channels()(dict(img_path=str(tmp_path / 'a.tif')))


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (dict(channels=()), r'^LoadChannels\.channels=\(\): expected whole numbers from 0'),
        (dict(channels=(0, -1)), r'channels=\(0, -1\): expected whole numbers'),
        (dict(value_range=(9, 0)), r'value_range=\(9, 0\): expected two numbers, the lower first'),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(UserError, match=message):
        load_channels(**settings)


@pytest.mark.parametrize(('nodata', 'count'), [(None, 0), (0, 6), (4095, 0)])
def test_pixels_without_data_are_ignored_where_they_are_labelled(tmp_path, nodata, count):
    pixels = pixels_of(3) + np.uint16(1)
    pixels[:2, :3] = 0
    pixels[5, 5, 0] = 0  # data: only one of its channels is 0
    path = tmp_path / 'a.tif'
    path.write_bytes(tiff_bytes(pixels, colours=2, nodata=nodata))
    loaded = LoadChannels(value_range=(0, 4095))(dict(img_path=str(path)))
    assert ('nodata' in loaded) == (nodata is not None)
    labels = np.ones((6, 8), np.uint8)
    ignored = IgnoreNodata()({**loaded, 'gt_seg_map': labels})['gt_seg_map'] == 255
    assert ignored.sum() == count and ignored[:2, :3].all() == (count > 0)
    assert IgnoreNodata()(dict(loaded)).keys() == loaded.keys()  # in inference there is no mask
