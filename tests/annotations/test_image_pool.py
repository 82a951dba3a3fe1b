import os
import shutil
import unicodedata

import exports
import pytest
from exports import save
from importing import import_masks
from PIL import Image

from mmseg_cct.annotations.image_pool import ImageNames
from mmseg_cct.errors import UserError


def test_images_beside_their_annotations_are_found(tmp_path, photos):
    folder = exports.segmentation_mask(tmp_path)
    shutil.copytree(photos, folder / 'JPEGImages')
    done = import_masks(folder, tmp_path / 'out', undrawn='background')
    assert (done.failed, done.new, done.images) == ([], 2, 3)
    assert (tmp_path / 'out/images/JPEGImages/b/1.jpg').is_symlink()
    with pytest.raises(UserError, match='--out'):
        import_masks(folder, folder / 'out', undrawn='background')
    save(folder / 'JPEGImages/a/1.png', b'')
    with pytest.raises(UserError, match=r'1\.png: differs from 1\.jpg in its extension (only|or)'):
        import_masks(folder, tmp_path / 'other', undrawn='background')


def test_images_are_linked_or_copied(tmp_path, photos):
    file = exports.coco(tmp_path)
    import_masks(file, tmp_path / 'linked', images=photos, undrawn='ignore')
    import_masks(file, tmp_path / 'copied', images=photos, undrawn='ignore', copy=True)
    assert os.path.samefile(tmp_path / 'linked/images/a/1.jpg', photos / 'a/1.jpg')
    assert not (tmp_path / 'copied/images/a/1.jpg').is_symlink()
    Image.new('RGB', (3, 3)).save(tmp_path / 'copied/images/a/1.jpg')
    with pytest.raises(UserError, match=r'images/a/1\.jpg: another image than .*photos/a/1\.jpg'):
        import_masks(file, tmp_path / 'copied', images=photos)


@pytest.mark.parametrize(
    ('image', 'name'),
    [
        ('a/1', 'data/upload/7/1a2b3c4d-1.jpg'),
        ('1a2b3c4d-My photo', '1a2b3c4d-My photo.jpg'),
        ('a/Bild 1 (2)', 'upload/1/0a1b2c3d-Bild_1_2.jpg'),
        ('a/1', 'C:\\photos\\a\\1.jpg'),
        (unicodedata.normalize('NFD', 'Größe/ä 1'), unicodedata.normalize('NFC', 'Größe/ä 1.jpg')),
    ],
)
def test_a_name_that_a_tool_changed_is_found(image, name):
    assert ImageNames([image, 'b/2']).find(name) == image


def test_only_an_upload_may_lack_its_folder():
    assert ImageNames(['a/1']).find('upload/1.jpg') is None
    with pytest.raises(UserError, match='1: may be a/1 or b/1'):
        ImageNames(['a/1', 'b/1']).find('upload/1/1a2b3c4d-1.jpg')
