import shutil

import exports
import pytest
from folders import CLASSES

from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError
from mmseg_cct.writer.new_config import Choices, new_config


def test_the_table_of_an_import_names_the_classes(tmp_path):
    data, photos = tmp_path / 'mine', exports.make_photos(tmp_path)
    import_masks(exports.coco(tmp_path), data, images=photos, rest='background')
    written = new_config(str(data), str(tmp_path / 'configs'), Choices())
    assert "classes = ('background', 'car', 'road')" in written.file.read_text()
    with pytest.raises(UserError, match=r'--classes car road: .*has background car road; expected'):
        new_config(str(data), str(tmp_path / 'configs'), Choices(['car', 'road']))
    (data / 'classes.json').unlink()
    with pytest.raises(UserError, match=r'--classes: missing; expected .*, or .*classes\.json'):
        new_config(str(data), str(tmp_path / 'configs'), Choices())


@pytest.mark.parametrize('export', [exports.labelme, exports.segmentation_mask])
def test_a_folder_that_is_an_export_is_told_the_way_in(tmp_path, export):
    folder = export(tmp_path)
    command = f'import_masks.* {folder} --out {folder}_masks --rest background'
    with pytest.raises(UserError, match=f'not masks of ids; expected first: python .*{command}'):
        new_config(str(folder), str(tmp_path / 'configs'), Choices())


def test_masks_among_the_photos_are_no_photos(data, tmp_path):
    shutil.copy(data / 'masks/1.png', data / 'images/1_Mask.png')
    shutil.copy(data / 'images/2.jpg', data / 'images/1_photo.jpg')
    with pytest.raises(UserError, match=r'1_Mask\.png: named like a mask \(1 in all\)') as e:
        new_config(str(data), str(tmp_path / 'configs'), Choices(CLASSES))
    (data / 'images/1_Mask.png').unlink()
    assert f'--images {data}/images --mask-suffix _Mask.png --binary NAME' in str(e.value)
    new_config(str(data), str(tmp_path / 'configs'), Choices(CLASSES))
