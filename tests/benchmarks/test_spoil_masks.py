import sys

import numpy as np
import pytest
import spoil_masks
from PIL import Image


@pytest.fixture
def masks(tmp_path):
    """Six masks of four classes in regions, and some ignored pixels."""
    for number in range(6):
        rng = np.random.default_rng(number)
        mask = rng.integers(0, 4, (4, 6)).astype(np.uint8).repeat(10, 0).repeat(10, 1)
        mask[:3, :5] = 255
        (tmp_path / 'masks').mkdir(exist_ok=True)
        Image.fromarray(mask).save(tmp_path / f'masks/{number}.png')
    return tmp_path / 'masks'


def test_strength_0_keeps_a_mask_and_more_spoils_what_less_spoils(masks):
    mask = np.array(Image.open(masks / '0.png'))
    same = spoil_masks.spoil(mask, 4, 0.0, seed=1)
    assert (same[mask != 255] == mask[mask != 255]).all() and same.max() < 4
    wrong = [(spoil_masks.spoil(mask, 4, s, seed=1) != mask).mean() for s in (0.2, 0.5, 1.0)]
    assert wrong == sorted(wrong) and wrong[0] < wrong[-1]


def test_the_same_seed_gives_the_same_files_of_the_wanted_miou(
    masks, monkeypatch, tmp_path, capsys
):
    files = []
    for out in ('a', 'b'):
        arguments = [str(masks), '--num-classes', '4', '--miou', '60', '--out', str(tmp_path / out)]
        monkeypatch.setattr(sys, 'argv', ['spoil_masks', *arguments])
        spoil_masks.main()
        files.append({path.name: path.read_bytes() for path in (tmp_path / out / '60').iterdir()})
    assert len(files[0]) == 6 and files[0] == files[1]
    lines = capsys.readouterr().out.splitlines()
    assert 50 < float(lines[0].partition('mIoU ')[2].partition(',')[0]) < 70
    assert lines[2].strip().startswith('kept, n=5 ')


def test_more_masks_tell_right_classes_from_wrong_ones():
    # of each image's 100 pixels of either class, some 95 and 20 are right
    rng = np.random.default_rng(0)
    right = rng.binomial(100, [0.95, 0.2], (200, 2))
    counts = np.empty((200, 2, 2), int)
    counts[:, [0, 1], [0, 1]], counts[:, [1, 0], [0, 1]] = right, 100 - right
    is_below, is_kept = spoil_masks.calibration(counts, 20)
    assert (is_below > 0.9).all() and is_kept.tolist() == [1, 0]
