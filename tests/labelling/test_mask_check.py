import numpy as np
import pytest
from folders import save

from mmseg_cct.annotations.class_table import ClassTable, write_table
from mmseg_cct.errors import UserError
from mmseg_cct.labelling import mask_check


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Six images, dark above and bright below, with masks; the third has that of none."""
    root = tmp_path / 'data'
    for index in range(7):
        ids = np.repeat(np.uint8([0, 1]), [5 + 5 * index, 75 - 5 * index])[:, None].repeat(100, 1)
        pixels = np.random.default_rng(index).integers(0, 50, (80, 100, 3), np.uint8)
        pixels[ids == 1] += 180
        save(root / f'images/{index}.png', pixels)
        if index < 6:
            save(root / f'masks/{index}.png', 1 - ids if index == 2 else ids)
    write_table(root, ClassTable({'road': (9, 9, 9), 'sky': (0, 0, 200)}))

    def encode(picture):
        return picture[::10, ::10].astype(np.float32)

    monkeypatch.setattr(mask_check, 'load_encoder', lambda *_: encode)
    return root


def check(data, out, **options):
    options |= dict(model_name='cct_mbv2-jpu')
    return mask_check.check_masks(str(data), ('road', 'sky'), str(out), **options)


def test_doubtful_masks_are_named_and_all_are_shown(data, tmp_path):
    out = tmp_path / 'out'
    for _ in range(2):  # a second run writes over the first
        judged, _ = check(data, out)
    assert [mask.name for mask in judged if mask.is_doubtful] == ['2']
    header, *rows = (out / 'masks.csv').read_text().splitlines()
    assert header == 'score,doubtful,name'
    assert rows[0].endswith(',1,2') and len(rows) == 6
    page = (out / 'review.html').read_text()
    assert page.count('class="case"') == 6 and page.index('<b>1. 2</b>') > 0
    check(data, out, number=2)
    assert (out / 'review.html').read_text().count('class="case"') == 2


def test_an_image_with_two_masks_is_named(data, tmp_path):
    (data / 'images/twin.png').write_bytes((data / 'images/1.png').read_bytes())
    save(data / 'masks/twin.png', np.zeros((80, 100), np.uint8))
    assert check(data, tmp_path / 'out')[1] == [('1', 'twin')]


def test_mistakes_are_named(data, tmp_path):
    with pytest.raises(UserError, match='is read'):
        check(data, data / 'images/x')
    for index in (0, 1):
        (data / f'masks/{index}.png').unlink()
    with pytest.raises(UserError, match='masks: 4'):
        check(data, tmp_path / 'out')
