#!/usr/bin/env python
"""Segments images with an exported ONNX file, without torch: onnxruntime, OpenCV and Pillow.

Besides the weights, the file holds all that is needed: classes, colours, and the size that images
are resized to. For each image it writes DIR/NAME.png, a palette PNG of class ids at the image's own
size; DIR is new, empty or of an earlier run. This script imports nothing from this project: copy it
to where the model runs.

Example:
    python predict_onnx.py cct_voc-XXXXXXXX.onnx photos --out predictions
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

RECORD = 'predict_onnx.json'  # marks a folder of this script
SUFFIXES = {'.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp'}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('model', type=Path, help='the ONNX file')
    parser.add_argument('input', type=Path, help='an image, or a folder of images')
    parser.add_argument('--out', type=Path, required=True, metavar='DIR', help='folder to write to')
    args = parser.parse_args()
    for path in (args.model, args.input):
        if not path.exists():
            parser.error(f'{path}: no such file or folder')
    source, out = args.input.resolve(), args.out.resolve()
    if source == out or (args.input.is_dir() and source in out.parents):
        parser.error(f'--out {args.out}: lies among the images; expected another folder')
    if out.exists() and not out.is_dir():
        parser.error(f'--out {args.out}: is a file; expected a folder')
    if out.is_dir() and any(out.iterdir()) and not (out / RECORD).is_file():
        parser.error(f'--out {args.out}: holds other files; expected a new or empty folder')
    return args


def segment(session: Any, size: list[int], image: np.ndarray) -> np.ndarray:
    """Predicts the class ids `(H, W)` of an image of any size, `(H, W, 3)` uint8 BGR."""
    import cv2
    import numpy as np

    height, width = size
    resized = cv2.resize(image, (width, height))[..., ::-1]
    inputs = resized.transpose(2, 0, 1)[None].astype(np.float32)  # normalised by the graph
    logits = session.run(['seg_logits'], {'images': inputs})[0][0]
    ids, best = np.zeros(image.shape[:2], np.uint8), np.full(image.shape[:2], -np.inf, np.float32)
    for number, each in enumerate(logits):  # three times as fast as argmax of a stack
        score = cv2.resize(each, image.shape[1::-1])
        np.copyto(ids, number, where=score > best)
        np.maximum(best, score, out=best)
    return ids


def main() -> int:
    """Predicts all images; returns 1 if one could not be read."""
    args = parse_args()
    import cv2
    import numpy as np
    import onnxruntime
    from PIL import Image

    try:
        session = onnxruntime.InferenceSession(str(args.model), providers=['CPUExecutionProvider'])
        notes = session.get_modelmeta().custom_metadata_map
        size, channels = json.loads(notes['size']), session.get_inputs()[0].shape[1]
        palette, classes = (json.loads(notes.get(key, '[]')) for key in ('palette', 'classes'))
    except Exception as error:  # onnxruntime has no class of its own for a damaged file
        why = f'{type(error).__name__}: {error}'.splitlines()[0]
        print(f'{args.model}: {why}; expected a file of publish_model.py', file=sys.stderr)
        return 2
    if channels != 3:
        expected = 'expected 3: segment images of other channels with tools/predict.py'
        print(f'{args.model}: takes {channels} channels; {expected}', file=sys.stderr)
        return 2
    found = [args.input] if args.input.is_file() else sorted(args.input.rglob('*'))
    paths = [path for path in found if path.suffix.lower() in SUFFIXES and path.is_file()]
    twins = {path.with_suffix(''): path for path in paths}
    if other := next((path for path in paths if twins[path.with_suffix('')] != path), None):
        twin = twins[other.with_suffix('')].name
        print(f'{other}: would have the same mask as {twin}; expected one of them', file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / RECORD).write_text(json.dumps(dict(model=args.model.name, classes=classes)))
    pixels, failed = np.zeros(len(classes), np.int64), 0
    for path in paths:
        # not `imread`, which ends the process at a name that is not UTF-8
        data = np.fromfile(path, np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
        if image is None:
            print(f'{path}: cannot be read', file=sys.stderr)
            failed += 1
            continue
        ids = segment(session, size, image)
        pixels += np.bincount(ids.ravel(), minlength=len(classes))
        mask = Image.fromarray(ids)
        mask.putpalette(np.ravel(palette).tolist())
        name = path.relative_to(args.input) if path != args.input else Path(path.name)
        target = (args.out / name).with_suffix('.png')
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name('.mask.part')  # a kill leaves no half mask
        mask.save(part, format='PNG')
        os.replace(part, target)
    print(f'{len(paths) - failed} masks in {args.out}')
    for name, share in zip(classes, 100 * pixels / max(pixels.sum(), 1)):
        print(f'{share:5.1f} % {name}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
