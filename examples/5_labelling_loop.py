"""A round of the labelling loop: train, choose the images to label, correct them, train again.

An annotation tool corrects the predictions of `batch/coco.json` in between. Here the ground truth
of the synthetic scenes stands for the annotator: it replaces the predicted masks, which are then
imported.

Usage: python examples/5_labelling_loop.py [ITERATIONS]
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np

from mmseg_cct.datasets.shapes import ShapesDataset
from mmseg_cct.datasets.shapes_scene import draw_scene

HERE = Path('work_dirs/examples/loop')
DATA, BATCH, ROUND1 = HERE / 'data', HERE / 'batch', HERE / 'round1'
CLASSES, PALETTE = ShapesDataset.METAINFO['classes'], ShapesDataset.METAINFO['palette']
iterations = sys.argv[1] if sys.argv[1:] else '400'


def tool(name: str, *arguments: object) -> None:
    """Runs a tool as one would on the command line."""
    command = ['python', f'tools/{name}.py', *map(str, arguments)]
    print('$', *command, flush=True)
    subprocess.run([sys.executable, *command[1:]], check=True)


def write_scenes(folder: Path, numbers: range, num_masks: int) -> None:
    """Draws scenes of 64 pixels, and masks for the first of them."""
    for part in ('images', 'masks'):
        (folder / part).mkdir(parents=True)
    for number in numbers:
        image, mask = draw_scene(0, number, 64)
        cv2.imwrite(str(folder / 'images' / f'{number}.png'), image)
        if number - numbers.start < num_masks:
            cv2.imwrite(str(folder / 'masks' / f'{number}.png'), mask)


shutil.rmtree(HERE, ignore_errors=True)
write_scenes(DATA, range(40), num_masks=10)
write_scenes(DATA / 'val', range(1000, 1020), num_masks=20)
(DATA / 'classes.json').write_text(json.dumps(dict(classes=CLASSES)))

# round 1
tool(
    'new_config', DATA, '--from-scratch', '--size', '64x64',
    '--iters', iterations, '--batch-size', 4, '--out', HERE,
)  # fmt: skip
config = HERE / 'cct-strong_mbv2_data.py'
tool('train', config, '--work-dir', ROUND1)

# which images next; review.html shows them
tool('next_batch', ROUND1, '-n', 5, '--format', 'coco', '--out', BATCH)
for image in (BATCH / 'images').iterdir():
    colours = np.array(PALETTE, np.uint8)[draw_scene(0, int(image.stem), 64)[1]]
    (HERE / 'corrected').mkdir(exist_ok=True)
    cv2.imwrite(str(HERE / 'corrected' / image.name), colours[..., ::-1])

# round 2
names = [f'{name}={",".join(map(str, colour))}' for name, colour in zip(CLASSES, PALETTE)]
tool(
    'import_masks', HERE / 'corrected', '--images', DATA / 'images', '--colors', *names,
    '--out', DATA,
)  # fmt: skip
tool('train', config, '--work-dir', HERE / 'round1-round2')
tool(
    'report', f'before={ROUND1}', f'after={HERE / "round1-round2"}', '--out', HERE / 'report',
)  # fmt: skip
