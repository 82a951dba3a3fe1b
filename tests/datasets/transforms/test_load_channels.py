import numpy as np
import pytest
from mmseg.registry import TRANSFORMS
from tiff import pixels_of, tiff_bytes

from mmseg_cct.errors import UserError

FOUR = tiff_bytes(pixels_of(4), 2, extra=(0,))
BYTES = tiff_bytes(pixels_of(3, 8, dtype='uint8'), 2)


def load_channels(**settings):
    return TRANSFORMS.build(dict(type='LoadChannels', **settings))


@pytest.mark.parametrize(
    ('channels', 'expected'),
    [
        ((0, 1, 2, 3), [0, 0, 127.5, 255]),
        ((1,), [0]),
        ((1, 2, 3), [255, 127.5, 0]),  # BGR
        ((2, 2, 2), [127.5] * 3),
    ],
)
def test_the_chosen_channels_are_loaded_in_their_order(tmp_path, channels, expected):
    pixels = np.full((6, 8, 4), (0, 100, 200, 300), 'uint16')
    (tmp_path / 'a.tif').write_bytes(tiff_bytes(pixels, 2, extra=(0,)))
    loader = load_channels(channels=channels, value_range=(100, 300))
    loaded = loader(dict(img_path=str(tmp_path / 'a.tif'), kept=1))
    assert loaded['img'].dtype == np.float32 and loaded['img'][0, 0].tolist() == expected
    assert loaded['img_shape'] == loaded['ori_shape'] == (6, 8) and loaded['kept'] == 1


@pytest.mark.parametrize(
    ('content', 'settings', 'problem'),
    [
        (b'no image', {}, 'cannot be read'),
        (FOUR, dict(channels=(0, 4)), '4 channels'),
        (FOUR, dict(channels=(0,)), 'values of type uint16'),
        # not the lowest of 12 bits
        (BYTES, dict(value_range=(0, 4095)), 'values of 8 bits'),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, content, settings, problem):
    (tmp_path / 'a.tif').write_bytes(content)
    with pytest.raises(UserError, match=rf'^{tmp_path}/a\.tif: {problem}'):
        load_channels(**settings)(dict(img_path=str(tmp_path / 'a.tif')))


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(tmp_path, value):
    pixels, path = np.full((6, 8, 3), 0.5, np.float32), tmp_path / 'a.tif'
    loader = load_channels(value_range=(0, 1))
    path.write_bytes(tiff_bytes(pixels, colours=2))
    assert (loader(dict(img_path=str(path)))['img'] == 127.5).all()
    pixels[2, 3, 1] = value
    path.write_bytes(tiff_bytes(pixels, colours=2))
    with pytest.raises(UserError, match=rf'^{path}: 1 pixels are NaN or infinite'):
        loader(dict(img_path=str(path)))
