import zipfile

import exports
import pytest
from exports import save
from importing import import_masks, labelme

from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('x.json', '{"images": ['),
        ('x.json', '{"images": [], "annotations": [{}], "categories": []}'),
        ('x.xml', '<annotations><image'),
        ('x.xml', '<annotations><track/></annotations>'),
        ('x.zip', 'PK\x05\x06' + '\0' * 10),
    ],
)
def test_a_damaged_file_is_one_error_that_names_it(tmp_path, name, text):
    save(tmp_path / name, text.encode())
    with pytest.raises(UserError) as raised:
        source = Source(tmp_path / name)
        list(require_reader(source).read(source).images)
    (problem,) = raised.value.problems
    assert name in str(problem.key) and '\n' not in str(problem)


def test_two_formats_in_one_folder_are_both_named(tmp_path):
    labelme(tmp_path / '1.json')
    exports.coco(tmp_path)
    with pytest.raises(UserError, match=r'x\.json \(COCO\) and 1\.json \(labelme\)'):
        require_reader(Source(tmp_path))


def test_an_export_may_become_the_data_folder_itself(tmp_path, photos):
    labelme(tmp_path / '1.json', imagePath='images/a/1.jpg')
    photos.rename(tmp_path / 'images')
    for counts in ((1, 0), (0, 1)):  # the second time the folder has a classes.json and masks, too
        done = import_masks(tmp_path, tmp_path, undrawn='background')
        assert ([], *counts) == (done.failed, done.new, done.unchanged)


def test_images_in_a_zip_are_taken(tmp_path, photos):
    archive = exports.cvat(tmp_path)
    with zipfile.ZipFile(archive, 'a') as file:
        for name in exports.NAMES:
            file.write(photos / f'{name}.jpg', f'images/{name}.jpg')
    for left in (2, 1):  # the second time as if the first had been killed amid the images
        done = import_masks(archive, tmp_path / 'out', undrawn='ignore')
        assert (done.failed, done.masks, done.images) == ([], 2, left)
        (tmp_path / 'out/images/images/a/1.jpg').unlink()
    with zipfile.ZipFile(archive, 'a') as file:
        file.write(photos / 'a/1.jpg', '../../evil.jpg')
        file.writestr('/evil.jpg', b'')
    with pytest.raises(UserError, match=r"'/evil\.jpg': leads out of the folder"):
        import_masks(archive, tmp_path / 'other', undrawn='ignore')
