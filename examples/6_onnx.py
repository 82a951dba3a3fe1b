"""Segments a folder of photos with an exported network: onnxruntime and OpenCV, without torch.

The graph normalises and pads by itself; what else the test pipeline does is repeated here.

Usage: python examples/6_onnx.py NETWORK.onnx PHOTOS MASKS
    (mmseg-cct publish-model WORK_DIR OUT.pth --onnx writes the network)
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

if len(sys.argv) != 4:
    sys.exit(__doc__)
network, photos, masks = sys.argv[1:]
session = onnxruntime.InferenceSession(network, providers=['CPUExecutionProvider'])
stored = session.get_modelmeta().custom_metadata_map
notes = {key: json.loads(value) for key, value in stored.items()}
palette = np.uint8(notes['palette'])
resized = [step for step in notes['test_pipeline'] if step['type'] == 'Resize']

Path(masks).mkdir(parents=True, exist_ok=True)
for path in sorted(Path(photos).iterdir()):
    image = cv2.imread(str(path))  # BGR, turned by EXIF
    if image is None:
        continue
    height, width = image.shape[:2]
    for step in resized:  # of `keep_ratio=False`
        image = cv2.resize(image, step['scale'])
    images = image[None, ..., ::-1].transpose(0, 3, 1, 2).astype(np.float32)  # (1, 3, H, W), RGB
    (logits,) = session.run(None, {'images': images})
    scores = cv2.resize(logits[0].transpose(1, 2, 0), (width, height))
    cv2.imwrite(str(Path(masks, f'{path.stem}.png')), palette[scores.argmax(2)][..., ::-1])
