"""Pixels without data; tests/tools/test_channels_and_bits.py trains on other channels."""

import numpy as np
import pytest
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.transforms import IgnoreNodata, LoadChannels


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
