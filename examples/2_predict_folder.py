"""Segments a folder of photos and writes the share of each class in each photo as a table.

On the command line, for masks and overlays:
    mmseg-cct predict WORK_DIR photos --out predictions

Usage: python examples/2_predict_folder.py [WORK_DIR PHOTOS]
    Without arguments it takes the CCT of examples/1_train.py and draws the photos.
"""

import csv
import sys
from pathlib import Path

import cv2
import numpy as np

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.shapes_scene import draw_scene

HERE = Path('work_dirs/examples')
if sys.argv[1:]:
    work_dir, folder = sys.argv[1:]
else:
    work_dir, folder = HERE / 'cct', HERE / 'photos'
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(3):
        cv2.imwrite(f'{folder}/{number}.JPG', draw_scene(0, 20000 + number, 48)[0])

predictor = Run.open(work_dir).predictor
classes = predictor.model.dataset_meta['classes']
suffixes = ('.jpg', '.jpeg', '.png')
photos = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in suffixes)
table = HERE / 'shares.csv'

with open(table, 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['photo', *classes])
    # images are loaded while the model computes; on a GPU several of one size go together
    for segmented in predictor(photos):
        if segmented.error is not None:
            print(f'{segmented.path}: {segmented.error}')
            continue
        shares = np.bincount(segmented.labels.ravel(), minlength=len(classes))
        writer.writerow([segmented.path.name, *(shares / segmented.labels.size).round(4)])

print(f'{len(photos)} photos in {table}')
