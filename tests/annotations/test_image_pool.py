import os
import shutil
import unicodedata
import zipfile
from pathlib import Path

import exports
import pytest
from exports import save
from importing import labelme
from PIL import Image

from mmseg_cct.annotations.image_pool import ImageNames
from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('export', 'image'),
    [
        (exports.labelme, '{}/1.jpg'),
        (exports.segmentation_mask, 'JPEGImages/{}/1.jpg'),
    ],
)
def test_images_beside_their_annotations_are_found(tmp_path, photos, export, image):
    folder = export(tmp_path)
    for part in 'ab':
        save(folder / image.format(part), (photos / part / '1.jpg').read_bytes())
    done = import_masks(folder, tmp_path / 'out', rest='background')
    assert (done.failed, done.new, done.images) == ([], 2, 2)
    assert (tmp_path / 'out/images' / image.format('b')).is_symlink()
    with pytest.raises(UserError, match=r'--out: .* lies in the folder'):
        import_masks(folder, folder / 'out', rest='background')


def test_images_of_one_name_in_an_export_are_an_error(tmp_path, photos):
    folder = tmp_path / 'x'
    labelme(folder / '1.json')
    for end in ('jpg', 'png'):
        save(folder / f'1.{end}', (photos / 'a/1.jpg').read_bytes())
    expected = r'x/1\.png: differs from 1\.jpg in its extension only; expected one image for each'
    with pytest.raises(UserError, match=expected):
        import_masks(folder, tmp_path / 'out', rest='background')


def test_images_are_linked_or_copied(tmp_path, photos):
    file = exports.coco(tmp_path)
    import_masks(file, tmp_path / 'linked', images=photos, rest='ignore')
    import_masks(file, tmp_path / 'copied', images=photos, rest='ignore', copy=True)
    assert os.path.samefile(tmp_path / 'linked/images/a/1.jpg', photos / 'a/1.jpg')
    assert not (tmp_path / 'copied/images/a/1.jpg').is_symlink()
    Image.new('RGB', (3, 3)).save(tmp_path / 'copied/images/a/1.jpg')
    with pytest.raises(UserError, match=r'images/a/1\.jpg: another image than .*photos/a/1\.jpg'):
        import_masks(file, tmp_path / 'copied', images=photos)


def test_a_copy_appears_once_it_is_complete(tmp_path, photos, monkeypatch):
    def stop(source, target):
        Path(target).write_bytes(b'half')
        raise KeyboardInterrupt

    first = labelme(tmp_path / 'x/1.json', imagePath='a/1.jpg')
    monkeypatch.setattr(shutil, 'copy2', stop)
    with pytest.raises(KeyboardInterrupt):
        import_masks(first, tmp_path / 'out', images=photos, rest='background', copy=True)
    assert not [path for path in (tmp_path / 'out/images').rglob('*') if path.is_file()]


def test_a_name_that_no_file_can_have_costs_its_image_alone(tmp_path, photos):
    long = 'ä' * 126 + '.jpg'  # of 256 bytes
    archive = exports.cvat(tmp_path)
    with zipfile.ZipFile(archive, 'a') as file:
        for name in (*exports.NAMES, long[:-4]):
            file.write(photos / 'a/1.jpg', f'{name}.jpg')
    done = import_masks(archive, tmp_path / 'out', rest='ignore')
    assert done.failed == [f'{"ä" * 40}...: a name of more than 255 bytes; expected a shorter one']
    assert (done.new, done.images) == (2, 2)
    data = exports.base64_of((photos / 'a/1.jpg').read_bytes())
    for name in (long, 'a.jpg'):
        labelme(tmp_path / f'x/{len(name)}.json', 'c' * 300, imageData=data, imagePath=name)
    done = import_masks(tmp_path / 'x', tmp_path / 'other', rest='ignore')
    assert done.new == 1 and ': a name of more than 255 bytes; expected a' in done.failed[0]


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
