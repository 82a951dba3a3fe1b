import pytest
from exports import write
from importing import import_masks, labelme

from mmseg_cct.annotations.importer import MARKS, PREDICTED


@pytest.mark.parametrize(
    ('mark', 'is_corrected', 'is_label'),
    [
        (None, False, False), (None, True, True), ('done', False, True), ('skip', True, False),
    ],
)  # fmt: skip
def test_only_what_somebody_corrected_or_marked_done_is_a_label(
    tmp_path, photos, mark, is_corrected, is_label
):
    export, options = tmp_path / 'x/1.json', dict(images=photos, undrawn='background')
    labelme(export, imagePath='a/1.jpg')
    import_masks(export, tmp_path / 'first', **options)
    (tmp_path / 'first/masks').rename(tmp_path / PREDICTED)
    if mark:
        write(tmp_path / MARKS, {'a/1.jpg': mark})
    if is_corrected:
        labelme(export, imagePath='a/1.jpg', points=[[0, 0], [8, 0], [8, 7], [0, 7]])
    done = import_masks(export, tmp_path / 'out', **options, batch=tmp_path)
    assert done.masks == is_label and (tmp_path / 'out/masks').exists() == is_label
    assert [list(images) for images in done.notes.values()] == [['a/1.jpg']] * (not is_label)
