import os
import shutil
import zipfile
from pathlib import Path

import exports
import pytest
from exports import save
from importing import labelme
from PIL import Image

from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('export', 'image'),
    [
        (exports.labelme, '{}/1.jpg'),
        (exports.yolo, 'images/{}/1.jpg'),
        (exports.supervisely, '{}/img/1.jpg'),
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
