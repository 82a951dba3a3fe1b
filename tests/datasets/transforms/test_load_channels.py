"""Any channels of an image, scaled to the range of 8 bits."""

import numpy as np
import pytest
from mmseg.registry import TRANSFORMS
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.transforms import LoadChannels
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


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(tmp_path, value):
    pixels = pixels_of(3).astype(np.float32) / 4095
    path = tmp_path / 'a.tif'
    for broken in (False, True):
        pixels[2, 3, 1] = value if broken else 0.5
        path.write_bytes(tiff_bytes(pixels, colours=2))
        loader = LoadChannels(value_range=(0, 1))
        if not broken:
            assert np.isfinite(loader(dict(img_path=str(path)))['img']).all()
    with pytest.raises(UserError, match=rf'^{path}: 1 pixels are NaN or infinite'):
        loader(dict(img_path=str(path)))
