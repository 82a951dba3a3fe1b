import numpy as np
import pytest
from folders import save
from world import run_tool

from mmseg_cct.annotations.class_table import ClassTable, write_table
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


def test_the_tool_names_doubtful_masks_and_shows_all(data, tmp_path, capsys):
    out = tmp_path / 'out'
    for _ in range(2):  # a second run writes over the first
        run_tool('check_masks', data, '--out', out)
    said = capsys.readouterr().out
    assert said.startswith('2: doubtful, score ') and '3: doubtful' not in said
    header, *rows = (out / 'masks.csv').read_text().splitlines()
    assert header == 'score,doubtful,name'
    assert rows[0].endswith(',1,2') and len(rows) == 6
    page = (out / 'review.html').read_text()
    assert page.count('class="case"') == 6 and page.index('<b>1. 2</b>') > 0
    run_tool('check_masks', data, '--out', out, '-n', 2)
    assert (out / 'review.html').read_text().count('class="case"') == 2


def test_an_image_with_two_masks_is_named(data, tmp_path, capsys):
    (data / 'images/twin.png').write_bytes((data / 'images/1.png').read_bytes())
    save(data / 'masks/twin.png', np.zeros((80, 100), np.uint8))
    run_tool('check_masks', data, '--out', tmp_path / 'out')
    assert '1 and twin' in capsys.readouterr().out


def test_mistakes_are_named(data, tmp_path, refused):
    assert 'is read' in refused('check_masks', data, '--out', data / 'images/x')
    for index in (0, 1):
        (data / f'masks/{index}.png').unlink()
    assert 'masks: 4' in refused('check_masks', data, '--out', tmp_path / 'out')
