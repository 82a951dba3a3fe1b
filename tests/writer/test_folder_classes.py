import shutil
from pathlib import Path

import exports
import numpy as np
import pytest
from folders import save
from importing import import_masks

from mmseg_cct.errors import UserError
from mmseg_cct.writer.folder_classes import context_of_classes, reject_void_names
from mmseg_cct.writer.new_config import Choices, new_config


def test_the_table_of_an_import_names_the_classes(tmp_path):
    data, photos = tmp_path / 'mine', exports.make_photos(tmp_path)
    import_masks(exports.coco(tmp_path), data, images=photos, undrawn='background')
    written = new_config(str(data), str(tmp_path / 'configs'), Choices())
    assert "classes = ('background', 'road', 'car')" in written.file.read_text()
    with pytest.raises(UserError, match=r'--classes car road: .*has background road car; expected'):
        new_config(str(data), str(tmp_path / 'configs'), Choices(['car', 'road'], force=True))


def test_a_folder_that_is_an_export_is_told_the_way_in(tmp_path):
    folder = exports.segmentation_mask(tmp_path)
    command = f'import-masks {folder} --out {folder}_masks --rest background'
    with pytest.raises(UserError, match=f'not masks of ids; expected first: .*{command}'):
        new_config(str(folder), str(tmp_path / 'configs'), Choices())


def test_images_without_a_mask_are_told_what_chooses_the_first(data, tmp_path):
    shutil.rmtree(data / 'masks')
    shutil.rmtree(data / 'val')
    with pytest.raises(UserError, match=f'next-batch --images {data}/images -n 10'):
        new_config(str(data), str(tmp_path / 'configs'), Choices(['ground', 'crack']))


def test_masks_of_0_and_255_are_told_how_to_import_them_before_a_file_is_written(data, tmp_path):
    for path in data.rglob('masks/*.png'):
        save(path, np.resize(np.uint8([0, 255]), (40, 64)))
    with pytest.raises(UserError) as error:
        new_config(str(data), str(tmp_path / 'configs'), Choices(['ground', 'crack']))
    assert str(error.value).endswith('--colors ground=0 crack=255')
    assert not Path(tmp_path, 'configs').exists() and not Path(data, 'classes.json').exists()


def test_the_background_is_no_object_unless_told():
    assert context_of_classes(('_background_', 'crack'), None) == ('_background_',)
    assert context_of_classes(('road', 'crack'), None) == ()
    assert context_of_classes(('road', 'crack'), ['crack']) == ('crack',)


def test_a_name_like_void_is_meant_if_it_is_context(tmp_path):
    reject_void_names(str(tmp_path), ('void', 'crack'), ['void'])
    with pytest.raises(UserError, match='class void: named like pixels without a label'):
        reject_void_names(str(tmp_path), ('void', 'crack'), None)
