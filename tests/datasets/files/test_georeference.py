"""Masks with the coordinates of their image, read by other means than those that write them."""

import numpy as np
import pytest
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2
from tiff import pixels_of, tiff_bytes

from mmseg_cct.datasets.files import georeference as module
from mmseg_cct.datasets.files.georeference import georeference, world_file, write_geotiff

# 10 m pixels, the upper left corner at (500000, 5800000), EPSG:32633
SCALE, TIE = (10.0, 10.0, 0.0), (0.0, 0.0, 0.0, 500000.0, 5800000.0, 0.0)
KEYS = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633)


@pytest.fixture
def geotiff(tmp_path):
    info = ImageFileDirectory_v2()
    for tag, value, kind in ((33550, SCALE, 12), (33922, TIE, 12), (34735, KEYS, 3)):
        info.tagtype[tag] = kind
        info[tag] = value
    path = tmp_path / 'tile.tif'
    Image.new('RGB', (8, 6)).save(path, tiffinfo=info)
    return path


@pytest.mark.parametrize('box', [False, True])
def test_a_mask_lies_where_its_image_lies(geotiff, tmp_path, box):
    if box:  # GeoJP2: a GeoTIFF in a JPEG 2000
        start = b'\0\0\0\x0cjP  \r\n\x87\n' + bytes(20)
        geotiff.write_bytes(start + module._BOX + geotiff.read_bytes())
    tifffile = pytest.importorskip('tifffile')
    ids = np.arange(48, dtype=np.uint8).reshape(6, 8) % 3
    palette = np.array([[1, 2, 3], [200, 0, 0], [0, 9, 0]], np.uint8)
    write_geotiff(tmp_path / 'out/mask.tif', ids, palette, georeference(geotiff))
    with tifffile.TiffFile(tmp_path / 'out/mask.tif') as file:
        tags = file.pages[0].tags
        assert (tags[33550].value, tags[33922].value, tags[34735].value) == (SCALE, TIE, KEYS)
        assert file.geotiff_metadata['ProjectedCSTypeGeoKey'] == 32633
    mask = Image.open(tmp_path / 'out/mask.tif')
    assert np.array_equal(np.array(mask), ids)
    assert np.array_equal(np.array(mask.convert('RGB')), palette[ids])


def test_other_images_lie_nowhere_and_gml_is_said_to_be_lost(tmp_path, messages):
    path = tmp_path / 'plain.tif'
    path.write_bytes(tiff_bytes(pixels_of(1)))
    assert georeference(path) is None
    Image.new('RGB', (4, 4)).save(tmp_path / 'photo.jpg')
    assert georeference(tmp_path / 'photo.jpg') is None and not messages
    path = tmp_path / 'tile.jp2'
    path.write_bytes(b'\0\0\0\x0cjP  \r\n\x87\n <gml:FeatureCollection')
    assert georeference(path) is None
    assert messages == [f'{path}: its georeference is GML, which the mask loses; expected GeoTIFF']


@pytest.mark.parametrize(
    ('image', 'world'),
    [('a.b.tif', 'a.b.tfw'), ('x.JPG', 'x.JGW'), ('x.jpeg', 'x.jpegw'), ('x.png', 'x.wld')],
)
def test_a_world_file_is_found_by_each_of_its_names(image, world, tmp_path):
    assert world_file(tmp_path / image) is None
    (tmp_path / world).touch()
    assert world_file(tmp_path / image) == tmp_path / world
    assert world_file(tmp_path / f'{"x" * 251}.png') is None  # of 255 bytes, so that has none
