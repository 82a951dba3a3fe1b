#!/usr/bin/env python
"""Writes the demo's scenes as files: images, masks, and the list of the unlabelled ones.

The configs beside this script read them from work_dirs/scenes; docs/weak_labels.md has the commands
of the study.

Example:
    python benchmarks/weak_scenes/draw_scenes.py work_dirs/scenes
"""

import argparse
from pathlib import Path

import cv2

from mmseg_cct.datasets import DrawShapesScene

SIZE = 48
# Numbers of the scenes, as in configs/_base_/datasets/shapes.py.
UNLABELED = range(1000, 1600)
PARTS = dict(train=UNLABELED, val=range(10000, 10100), test=range(20000, 20200))
LABELED = range(12)  # with masks: the classifier sees them too


def write_scenes(out: Path) -> None:
    """Draws the scenes of all parts."""
    draw = DrawShapesScene()
    for part, numbers in PARTS.items():
        for kind in ('images', 'masks'):
            (out / kind / part).mkdir(parents=True, exist_ok=True)
        for number in [*LABELED, *numbers] if part == 'train' else numbers:
            scene = draw(dict(scene=(0, number, SIZE), seg_fields=[]))
            cv2.imwrite(str(out / f'images/{part}/{number:05d}.png'), scene['img'])
            cv2.imwrite(str(out / f'masks/{part}/{number:05d}.png'), scene['gt_seg_map'])
    lines = ''.join(f'{number:05d}\n' for number in UNLABELED)
    (out / '12_unlabeled.txt').write_text(lines, encoding='utf-8')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('out', type=Path, metavar='DIR', help='folder to write to')
    write_scenes(parser.parse_args().out)
