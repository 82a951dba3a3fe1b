"""Segments a folder of photos and writes the share of each class in each photo as a table.

On the command line, for masks and overlays:
    python tools/predict.py CONFIG CHECKPOINT photos --out predictions

Usage: python examples/2_predict_folder.py [CONFIG CHECKPOINT PHOTOS]
    Without arguments it takes the CCT of examples/1_train.py and draws the photos.
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
from mmseg_cct.datasets.shapes_scene import draw_scene

HERE = Path('work_dirs/examples')
if sys.argv[1:]:
    config, checkpoint, folder = sys.argv[1:]
else:
    config, folder = 'configs/demo/cct_shapes.py', str(HERE / 'photos')
    checkpoint = (HERE / 'cct/last_checkpoint').read_text()
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(3):
        cv2.imwrite(f'{folder}/{number}.JPG', draw_scene(0, 20000 + number, 48)[0])

model = load_model(load_config(config, {}), checkpoint)
classes = model.dataset_meta['classes']
suffixes = ('.jpg', '.jpeg', '.png')
photos = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in suffixes)
table = HERE / 'shares.csv'

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
