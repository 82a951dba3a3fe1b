import numpy as np
import pytest
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.image_values import measure_images
from mmseg_cct.errors import UserError


@pytest.fixture
def images(tmp_path):
    """Writes TIFFs of the given pixels."""

    def write(*arrays, **layout):
        paths = [tmp_path / f'{index}.tif' for index in range(len(arrays))]
        for path, pixels in zip(paths, arrays):
            path.write_bytes(tiff_bytes(pixels, **layout))
        return paths

    return write


@pytest.mark.parametrize(
    ('pixels', 'layout', 'options', 'channels', 'limits'),
    [
        (pixels_of(3), dict(colours=2), {}, (0, 1, 2), (0, 4095)),
        (pixels_of(1), {}, dict(bits=14), (0, 0, 0), (0, 16383)),
        (pixels_of(4), dict(colours=2, extra=(1,)), {}, (0, 1, 2), (0, 4095)),
        (pixels_of(4), dict(colours=2, extra=(0,)), dict(channels=(3, 0)), (3, 0), (0, 4095)),
        (pixels_of(4, 8, dtype='uint8'), dict(colours=2, extra=(0,)), {}, (0, 1, 2, 3), None),
        (pixels_of(3, 8, dtype='uint8'), dict(colours=2), dict(channels=(1,)), (1,), None),
        # a camera of heat: values from 7000 to 7100 of 65535
        (pixels_of(1, 6) + np.uint16(7000), {}, {}, (0, 0, 0), (7000, 7063)),
    ],
)
def test_channels_and_range_follow_from_the_files(
    images, pixels, layout, options, channels, limits
):
    values = measure_images(images(pixels, pixels[::-1], **layout), **options)
    assert values.loader['channels'] == channels
    value_range = values.loader.get('value_range')
    assert value_range == limits or np.allclose(value_range, limits, atol=2)
    low, high = value_range or (0, 255)
    scaled = (pixels[..., list(channels)].astype(float).clip(low, high) - low) * 255 / (high - low)
    np.testing.assert_allclose(values.mean, scaled.mean((0, 1)), atol=1e-3)
    np.testing.assert_allclose(values.std, scaled.std((0, 1)), atol=1e-3)


def test_pixels_without_data_are_not_measured(images):
    pixels = pixels_of(4)
    expected = measure_images(images(pixels, colours=2, extra=(0,)))
    holes = np.full_like(pixels[:3], 65535)
    holes[..., 1] = 7  # one channel of four has a value there
    measured = measure_images(
        images(np.vstack([pixels, holes]), colours=2, extra=(0,), no_data=65535)
    )
    assert measured[1:] == expected[1:]
    alone = measure_images(images(np.full_like(pixels, 9), colours=2, extra=(0,), no_data=9))
    assert alone.mean == measure_images(images(np.full_like(pixels, 9), colours=2, extra=(0,))).mean


def test_images_of_8_bits_need_nothing(images):
    assert measure_images(images(pixels_of(3, 8, dtype='uint8'), colours=2)) is None


@pytest.mark.parametrize(
    ('arrays', 'options', 'key'),
    [
        ((pixels_of(1), pixels_of(3)), {}, '1.tif'),  # of two kinds
        ((pixels_of(1).astype('float32'),), {}, '0.tif'),
        ((pixels_of(1),), dict(channels=(0, 1)), '--channels 0,1'),
        ((pixels_of(1),), dict(bits=8), '--bits 8'),
    ],
)
def test_what_does_not_fit_is_named(images, arrays, options, key):
    with pytest.raises(UserError) as caught:
        measure_images(images(*arrays), **options)
    assert str(caught.value.problems[0].key).endswith(key)
