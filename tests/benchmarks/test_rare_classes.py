"""The drawn cracks: rare, the same in each drawing, and a folder that new_config takes."""

import numpy as np
from PIL import Image
from rare_classes import draw_cracks

from mmseg_cct.writer.new_config import Choices, new_config


def test_cracks_are_rare_and_new_config_sees_it(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_cracks, 'UNLABELED', 4)
    monkeypatch.setattr(draw_cracks, 'VALIDATION', 4)
    draw_cracks.write_walls(tmp_path / 'cracks')
    written = new_config(
        str(tmp_path / 'cracks'), str(tmp_path / 'configs'), Choices(['background', 'crack'])
    )
    summary = written.summary
    assert (len(summary.labels), summary.unlabeled, len(summary.validation)) == (20, 4, 4)
    assert 0.003 < summary.pixels[1] / summary.pixels.sum() < 0.01
    assert written.rare == ('crack',)
    drawn = np.asarray(Image.open(tmp_path / 'cracks/masks/00000.png'))
    assert (drawn == draw_cracks.draw_wall(0)[1]).all() and drawn.any()
