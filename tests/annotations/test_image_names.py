"""The image that a tool's name stands for."""

import unicodedata

import pytest

from mmseg_cct.annotations.image_names import ImageNames
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('image', 'name'),
    [
        ('a/1', 'data/upload/7/1a2b3c4d-1.jpg'),
        ('a/My photo (1)', 'data/upload/7/1a2b3c4d-My_photo_1.jpg'),
        ('1a2b3c4d-My photo', '1a2b3c4d-My photo.jpg'),
        ('a/My photo', 'a/My%20photo.jpg'),
        ('a/1', 'C:\\photos\\a\\1.jpg'),
        (unicodedata.normalize('NFD', 'Größe/ä 1'), unicodedata.normalize('NFC', 'Größe/ä 1.jpg')),
        (unicodedata.normalize('NFC', 'ä'), unicodedata.normalize('NFD', 'ä.jpg')),
    ],
)
def test_a_name_that_a_tool_changed_is_found(image, name):
    assert ImageNames([image, 'b/2']).find(name) == image


def test_an_ending_that_all_images_share_may_be_missing():
    names = ImageNames(['a/1_leftImg8bit', 'b c_leftImg8bit'])
    assert names.find('a/1_gtFine') is None
    assert names.find('a/1.png') == 'a/1_leftImg8bit'
    for name in ('b%20c_leftImg8bit.png', 'b c.png'):
        assert names.find(name) == 'b c_leftImg8bit'


def test_only_an_upload_may_lack_its_folder_and_special_characters():
    names = ImageNames(['a/1', 'My photo'])
    assert names.find('upload/1.jpg') is names.find('My_photo.jpg') is None
    with pytest.raises(UserError, match='stands for a/My photo and b/My_photo; expected the fol'):
        ImageNames(['a/My photo', 'b/My_photo']).find('upload/1/1a2b3c4d-My_photo.jpg')
