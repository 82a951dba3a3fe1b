"""Draws demo.png: test scenes at 256 pixels, and what two networks see in them.

    bash tools/demo.sh
    python tools/train.py configs/demo/cct_shapes.py --method cct-strong \\
        --work-dir work_dirs/demo/cct-strong
    python docs/images/demo.py

Of the first eight scenes with three kinds of objects it takes the two in which the networks differ
most. They are trained on scenes of 48 pixels: they get these shrunk to that size, and their scores
are enlarged, as MMSeg does with every image that a pipeline resizes.
"""

import itertools
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from mmseg.apis import inference_model

import mmseg_cct.plugin  # noqa: F401, registers what the configs name
from mmseg_cct.apis.report.evaluation import Picture
from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.shapes import ShapesDataset
from mmseg_cct.datasets.shapes_scene import draw_scene
from mmseg_cct.engine.figures import outer_legend, png_bytes
from mmseg_cct.engine.visualization import paint
from mmseg_cct.utils.files import write_atomic

ROOT = Path(__file__).resolve().parents[2]
SIZE, TRAINED = 256, 48
FIRST, CANDIDATES, SHOWN = 20000, 8, 2
RUNS = {'supervised': 'supervised', 'cct-strong': 'cct-strong'}


def main() -> None:
    """Predicts and draws."""
    busy = (n for n in itertools.count(FIRST) if len(np.unique(draw_scene(0, n, SIZE)[1])) > 3)
    scenes = list(itertools.islice(busy, CANDIDATES))
    pictures = {title: predictions(name, scenes) for title, name in RUNS.items()}
    differ = [np.mean(a.prediction != b.prediction) for a, b in zip(*pictures.values())]
    chosen = sorted(np.argsort(differ)[-SHOWN:])
    shown = {title: [of_run[i] for i in chosen] for title, of_run in pictures.items()}
    write_atomic(ROOT / 'docs/images/demo.png', png_bytes(plot_grid(shown), 110))


def plot_grid(pictures: dict[str, list[Picture]]) -> Figure:
    """Plots a row for each scene: the image, the truth and the prediction of each network."""
    classes, palette = (ShapesDataset.METAINFO[key] for key in ('classes', 'palette'))
    rows = list(zip(*pictures.values()))
    figure = Figure(figsize=(2.65 * (2 + len(pictures)), 2.65 * len(rows)), layout='constrained')
    grid = figure.subplots(len(rows), 2 + len(pictures), squeeze=False)
    for line, row in zip(grid, rows):
        labels = [row[0].truth, *(picture.prediction for picture in row)]
        for axes, shown in zip(line, [row[0].image, *(paint(ids, palette) for ids in labels)]):
            axes.imshow(shown, interpolation='nearest')
            axes.set_axis_off()
    for axes, title in zip(grid[0], ['image', 'truth', *pictures]):
        axes.set_title(title, fontsize=12)
    colors = [*zip(classes, palette), ('ignored', (255, 255, 255))]
    hexes = {name: '#{:02x}{:02x}{:02x}'.format(*color) for name, color in colors}
    outer_legend(figure, [Patch(fc=color, ec='0.6', label=name) for name, color in hexes.items()])
    return figure


def predictions(name: str, scenes: list[int]) -> list[Picture]:
    """Draws scenes and lets a network of the demo predict them."""
    resize = dict(type='Resize', scale=(TRAINED, TRAINED), interpolation='area')
    pipeline = [dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')]
    run = Run.open(ROOT / 'work_dirs/demo' / name, options=dict(test_pipeline=pipeline))
    model, pictures = run.load_model(), []
    for number in scenes:
        image, truth = draw_scene(0, number, SIZE)
        labels = inference_model(model, np.array(image)).pred_sem_seg.data[0].numpy()
        rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        pictures.append(Picture(f'{number}', rgb, truth, labels))
    return pictures


if __name__ == '__main__':
    main()
