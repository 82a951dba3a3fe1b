"""Segments a folder of photos and writes the share of each class in each photo as a table.

On the command line, for masks and overlays:
    python tools/predict.py CONFIG CHECKPOINT photos --out predictions

Usage: python examples/2_predict_folder.py CONFIG CHECKPOINT PHOTOS TABLE.csv
"""

import csv
import sys
from pathlib import Path

import cv2
import numpy as np

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.inference import load_model
from mmseg_cct.apis.segment import segment
from mmseg_cct.config.load import load_config

config, checkpoint, folder, table = sys.argv[1:]
model = load_model(load_config(config, {}), checkpoint)
classes = model.dataset_meta['classes']
photos = sorted(path for path in Path(folder).iterdir() if path.suffix in ('.jpg', '.png'))

with open(table, 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['photo', *classes])
    # images are loaded while the model computes; on a GPU several of one size go together
    for segmented in segment(model, photos, lambda path: cv2.imread(str(path))):
        if segmented.error is not None:
            print(f'{segmented.key}: {segmented.error}')
            continue
        shares = np.bincount(segmented.labels.ravel(), minlength=len(classes))
        writer.writerow([segmented.key.name, *(shares / segmented.labels.size).round(4)])

print(f'{len(photos)} photos in {table}')
