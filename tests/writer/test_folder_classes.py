import exports
import pytest

from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError
from mmseg_cct.writer.new_config import (
    Choices,
    new_config,
)


def test_the_table_of_an_import_names_the_classes(tmp_path):
    data = tmp_path / 'mine'
    import_masks(
        exports.coco(tmp_path), data, images=exports.make_photos(tmp_path), rest='background'
    )
    written = new_config(str(data), str(tmp_path / 'configs'), Choices())
    assert written.classes == ('background', 'car', 'road')
    with pytest.raises(UserError, match=r'--classes car road: .*has background car road; expected'):
        new_config(str(data), str(tmp_path / 'configs'), Choices(['car', 'road']))
    (data / 'classes.json').unlink()
    with pytest.raises(UserError, match=r'--classes: missing; expected .*, or .*classes\.json'):
        new_config(str(data), str(tmp_path / 'configs'), Choices())


@pytest.mark.parametrize('export', [exports.yolo, exports.labelme, exports.segmentation_mask])
def test_a_folder_that_is_an_export_is_told_the_way_in(tmp_path, export):
    folder = export(tmp_path)
    command = f'import_masks.* {folder} --out {folder}_masks --rest background'
    with pytest.raises(UserError, match=f'not masks of ids; expected first: python .*{command}'):
        new_config(str(folder), str(tmp_path / 'configs'), Choices())
