"""The drawn cracks: rare, the same in each drawing, and a folder that new_config takes."""

import re

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
    assert written.described.startswith('20 labelled and 4 unlabelled images')
    assert ', 4 to validate on' in written.described
    share = re.search(r'\| crack \| +(\S+) %', written.described)
    assert 0.3 < float(share[1]) < 1
    assert written.notes[0].startswith('rare: crack;')
    drawn = np.asarray(Image.open(tmp_path / 'cracks/masks/00000.png'))
    assert (drawn == draw_cracks.draw_wall(0)[1]).all() and drawn.any()
