#!/usr/bin/env python
"""Segments images with an exported ONNX file, without torch: onnxruntime, OpenCV and Pillow.

Besides the weights, the file holds all that is needed: classes, colours, and how an image becomes
the network's input. What this script cannot do as tools/predict.py does gives an error, such as the
windows of test_cfg.mode='slide': it holds each image whole. Georeferences are lost. For each image
it writes DIR/NAME.png, a palette PNG of class ids at the image's own size; DIR is new, empty or of
an earlier run. TIFFs that OpenCV would change need tifffile. This script imports nothing from this
project: copy it to where the model runs.

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
    from collections.abc import Callable

    import numpy as np

RECORD = 'predict_onnx.json'  # marks a folder of this script
TIFF = {'.tif', '.tiff'}
SUFFIXES = {'.bmp', '.jp2', '.jpeg', '.jpg', '.png', '.webp', *TIFF}


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


def read_notes(session: Any) -> dict[str, Any]:
    """Reads what publish_model.py noted in the file: classes, colours, the way of an image.

    Args:
        session: Of onnxruntime.

    Returns:
        The notes.

    Raises:
        ValueError: If a note is missing or of another kind.
    """
    stored = session.get_modelmeta().custom_metadata_map
    notes: dict[str, Any] = {key: json.loads(value) for key, value in stored.items()}
    way = notes.get('way')
    found = {'way': way, **notes, **(way if isinstance(way, dict) else {})}
    for key, is_right in NOTES.items():
        if key not in found or not is_right(found[key]):
            raise ValueError(f'its note {key} is {str(found.get(key, "missing"))[:80]}')
    if len(notes['palette']) != len(notes['classes']):
        raise ValueError(f'its note palette is of {len(notes["palette"])} colours')
    return notes


def _are(is_right: Callable[[Any], bool], number: int | None = None) -> Callable[[Any], bool]:
    """Returns a test for a list of such values, of a fixed number if one is given."""
    return lambda value: (
        isinstance(value, list) and number in (None, len(value)) and all(map(is_right, value))
    )


def _or_none(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_right(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


NOTES = {
    'way': lambda value: isinstance(value, dict),
    'cannot': _are(_is_name),
    'channels': _or_none(_are(_is_count)),
    'value_range': _or_none(
        lambda value: _are(lambda v: type(v) in (int, float), 2)(value) and value[0] < value[1]
    ),
    'scale': _or_none(_are(lambda value: _is_count(value) and value > 0, 2)),
    'keep_ratio': lambda value: type(value) is bool,
    'size': _or_none(_are(_is_count, 2)),
    'classes': _are(_is_name),
    'palette': _are(_are(lambda value: _is_count(value) and value < 256, 3)),
}


def load(path: Path, way: dict[str, Any]) -> np.ndarray:
    """Loads an image `(H, W, C)` as the training did: 8-bit BGR, or the channels of the model."""
    import cv2
    import numpy as np

    # not `imread`, which ends the process at a name that is not UTF-8
    data, is_tiff = np.fromfile(path, np.uint8), path.suffix.lower() in TIFF
    if way['channels'] is not None and is_tiff and not _opencv_reads(data.tobytes()):
        return _channels(_with_tifffile(path), way)
    pixels: Any = cv2.imdecode(data, cv2.IMREAD_UNCHANGED) if data.size else None
    if pixels is None:
        raise ValueError('cannot be read')
    pixels = np.atleast_3d(pixels)
    number = pixels.shape[2]
    if way['channels'] is None:
        if pixels.dtype != np.uint8 or (is_tiff and number == 4):
            found = f'{number} channels of {pixels.dtype}'
            raise ValueError(f'{found}; expected 8-bit RGB or grey, which the model was trained on')
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR)  # turned by EXIF
        return pixels
    return _channels(pixels if number < 3 else pixels[..., [2, 1, 0, *range(3, number)]], way)


def _with_tifffile(path: Path) -> np.ndarray:
    import numpy as np
    import tifffile

    with tifffile.TiffFile(path) as file:
        pixels, axes = file.pages[0].asarray(), file.pages[0].axes
    return np.moveaxis(pixels, axes.index('S'), -1) if 'S' in axes else np.atleast_3d(pixels)


def _channels(pixels: np.ndarray, way: dict[str, Any]) -> np.ndarray:
    """Chooses channels of `(H, W, K)` and scales their values; three become BGR."""
    import numpy as np

    channels, limits = list(way['channels']), way['value_range']
    if max(channels) >= pixels.shape[2]:
        raise ValueError(f'{pixels.shape[2]} channels; expected {max(channels) + 1} or more')
    if (pixels.dtype == np.uint8) != (limits is None or limits[1] <= 255):
        raise ValueError(f'values of {pixels.dtype}; expected those of the training ({limits})')
    chosen = pixels[..., channels[::-1] if len(channels) == 3 else channels]
    if limits is not None:
        low, high = limits
        chosen = (chosen.astype(np.float32).clip(low, high) - low) * (255 / (high - low))
    return np.ascontiguousarray(chosen)


def _opencv_reads(tiff: bytes) -> bool:
    """Whether OpenCV gives all channels of a TIFF unchanged."""
    from io import BytesIO

    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    tags = ImageFileDirectory_v2(tiff[: 16 if tiff[2:4] in (b'+\0', b'\0+') else 8])
    file = BytesIO(tiff)
    file.seek(tags.next)
    tags.load(file)
    channels = tags.get(277, 1)
    separate = tags.get(284, 1) == 2 and channels > 1
    bits, extra = tags.get(258, 1), tags.get(338, ())
    return (
        (channels == 1 or tags.get(262, 1) == 2)
        and channels in (1, 3, 4)
        and 2 not in (extra if isinstance(extra, tuple) else (extra,))
        and not separate
        and max(bits if isinstance(bits, tuple) else (bits,)) in (8, 16, 32)
    )


def input_size(height: int, width: int, way: dict[str, Any]) -> tuple[int, int]:
    """Returns width and height of the network's input for an image, as mmcv computes them."""
    if way['scale'] is None:
        return width, height
    if not way['keep_ratio']:
        return way['scale'][0], way['scale'][1]
    longest, shortest = max(way['scale']), min(way['scale'])
    factor = min(longest / max(height, width), shortest / min(height, width))
    return int(width * factor + 0.5), int(height * factor + 0.5)


def segment(session: Any, notes: dict[str, Any], image: np.ndarray) -> np.ndarray:
    """Predicts the class ids `(H, W)` of an image of any size, `(H, W, C)`; BGR if C is 3."""
    import cv2
    import numpy as np

    height, width = image.shape[:2]
    width, height = input_size(height, width, notes['way'])
    if notes['size'] not in (None, [height, width]):
        found = f'{height}x{width} at the size of the test pipeline'
        expected = '{}x{}, that of the exported graph (publish_model.py --size)'
        raise ValueError(f'{found}; expected ' + expected.format(*notes['size']))
    resized = np.atleast_3d(cv2.resize(image, (width, height)))
    if resized.shape[2] == 3:
        resized = resized[..., ::-1]
    inputs = resized.transpose(2, 0, 1)[None].astype(np.float32)  # normalised by the graph
    logits = session.run(['seg_logits'], {'images': inputs})[0][0]
    if len(logits) != len(notes['classes']):
        raise ValueError(
            f'{len(logits)} classes in the graph, {len(notes["classes"])} in its notes'
        )
    ids, best = np.zeros(image.shape[:2], np.uint8), np.full(image.shape[:2], -np.inf, np.float32)
    for number, each in enumerate(logits):  # three times as fast as argmax of a stack
        score = cv2.resize(each, image.shape[1::-1])
        np.copyto(ids, number, where=score > best)
        np.maximum(best, score, out=best)
    return ids


def say(line: str, file: Any = None) -> None:
    """Prints a line; what names hold beside text, such as control characters, becomes escapes."""
    print(''.join(x if x.isprintable() else ascii(x)[1:-1] for x in line), file=file)


def main() -> int:
    """Predicts all images; returns 1 if one could not be read."""
    args = parse_args()
    os.environ.setdefault('OPENCV_LOG_LEVEL', 'FATAL')  # libtiff's lines
    import numpy as np
    import onnxruntime
    from PIL import Image

    try:
        session = onnxruntime.InferenceSession(str(args.model), providers=['CPUExecutionProvider'])
        notes = read_notes(session)
        cannot = notes['way']['cannot']
        palette, classes = notes['palette'], notes['classes']
    except Exception as error:  # onnxruntime has no class of its own for a damaged file
        why = f'{type(error).__name__}: {error}'.splitlines()[0]
        say(f'{args.model}: {why}; expected a file of publish_model.py', file=sys.stderr)
        return 2
    if cannot:
        say(f'{args.model}: {", ".join(cannot)}: segment with tools/predict.py', file=sys.stderr)
        return 2
    found = [args.input] if args.input.is_file() else sorted(args.input.rglob('*'))
    paths = [path for path in found if path.suffix.lower() in SUFFIXES and path.is_file()]
    twins = {path.with_suffix(''): path for path in paths}
    if other := next((path for path in paths if twins[path.with_suffix('')] != path), None):
        twin = twins[other.with_suffix('')].name
        say(f'{other}: would have the same mask as {twin}; expected one of them', file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / RECORD).write_text(json.dumps(dict(model=args.model.name, classes=classes)))
    pixels, failed = np.zeros(len(classes), np.int64), 0
    for path in paths:
        try:
            ids = segment(session, notes, load(path, notes['way']))
        except Exception as error:  # decoders raise nearly anything on a corrupt file
            say(f'{path}: {error}', file=sys.stderr)
            failed += 1
            continue
        pixels += np.bincount(ids.ravel(), minlength=len(classes))
        mask = Image.fromarray(ids)
        mask.putpalette(np.ravel(palette).tolist())
        name = path.relative_to(args.input) if path != args.input else Path(path.name)
        target = (args.out / name).with_suffix('.png')
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name('.mask.part')  # a kill leaves no half mask
        mask.save(part, format='PNG')
        os.replace(part, target)
    say(f'{len(paths) - failed} masks in {args.out}')
    for name, share in zip(classes, 100 * pixels / max(pixels.sum(), 1)):
        say(f'{share:5.1f} % {name}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
