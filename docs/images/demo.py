"""Draws demo.png: test scenes at 256 pixels, and what the demo's two networks see in them.

    bash tools/demo.sh && python docs/images/demo.py

Of the first eight scenes with three kinds of objects it takes the two in which the networks differ
most. They are trained on scenes of 48 pixels: they get these shrunk to that size, and their scores
are enlarged, as MMSeg does with every image that a pipeline resizes.
"""

import itertools
from pathlib import Path

import cv2
import numpy as np
from mmseg.apis import inference_model

import mmseg_cct.plugin  # noqa: F401, registers what the configs name
from mmseg_cct.analysis.finished_runs import Picture, find_run
from mmseg_cct.analysis.plots import plot_grid
from mmseg_cct.datasets.shapes import ShapesDataset
from mmseg_cct.datasets.shapes_scene import draw_scene
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.visualization.figures import png_bytes

ROOT = Path(__file__).resolve().parents[2]
SIZE, TRAINED = 256, 48
FIRST, CANDIDATES, SHOWN = 20000, 8, 2
RUNS = dict(supervised='supervised', CCT='cct')


def main() -> None:
    """Predicts and draws."""
    busy = (n for n in itertools.count(FIRST) if len(np.unique(draw_scene(0, n, SIZE)[1])) > 3)
    scenes = list(itertools.islice(busy, CANDIDATES))
    pictures = {title: predictions(name, scenes) for title, name in RUNS.items()}
    differ = [np.mean(a.prediction != b.prediction) for a, b in zip(*pictures.values())]
    chosen = sorted(np.argsort(differ)[-SHOWN:])
    shown = {title: [of_run[i] for i in chosen] for title, of_run in pictures.items()}
    figure = plot_grid(shown, ShapesDataset.METAINFO['classes'], ShapesDataset.METAINFO['palette'])
    write_atomic(ROOT / 'docs/images/demo.png', png_bytes(figure, 110))


def predictions(name: str, scenes: list[int]) -> list[Picture]:
    """Draws scenes and lets a network of the demo predict them."""
    run = find_run(name, ROOT / 'work_dirs/demo' / name)
    resize = dict(type='Resize', scale=(TRAINED, TRAINED), interpolation='area')
    run.config.test_pipeline = [dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')]
    pictures = []
    for number in scenes:
        image, truth = draw_scene(0, number, SIZE)
        labels = inference_model(run.model, np.array(image)).pred_sem_seg.data[0].numpy()
        rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        pictures.append(Picture(f'{number}', rgb, truth, labels))
    return pictures


if __name__ == '__main__':
    main()
