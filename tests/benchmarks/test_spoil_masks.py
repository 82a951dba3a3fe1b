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
