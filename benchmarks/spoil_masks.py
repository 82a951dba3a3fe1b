#!/usr/bin/env python
"""Spoils masks to a given mIoU, as masks of unknown quality: same seed, same files.

Four faults, at most one of the first two in a connected part of a class:

- confused: the part gets the class before or after its own in the list of classes;
- lost: it gets the class that touches it most;
- holes: a disc of up to a fifth of the part gets the class that touches the part most;
- shift: the whole mask moves by up to 6 % of its sides.

Each part draws once when it breaks, between strengths 0 and 1, so a mask of more strength has the
faults of one of less, and bisection finds the strength of an mIoU.

Prints, too, how the calibration of docs/experiments.md judges these masks by n of them, drawn
again and again: in which share of the draws its bound is above a class's precision over all masks,
and in which the class is kept.

Example:
    python benchmarks/spoil_masks.py data/idd_lite/masks/train --num-classes 7 \\
        --miou 40 60 80 --out work_dirs/spoiled
"""

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from mmseg_cct.engine.hooks.weak_masks_hook import LEAST, mask_precision
from mmseg_cct.engine.metrics.scores import confusion_of, iou_of

IGNORED = 255
SMALLEST_PART = 16  # pixels
MARGIN = 2  # pixels around a part that touch it
LARGEST_SHIFT = 0.06  # of the mask's sides
# shares of the parts with each fault at strength 1
CONFUSED, LOST, WITH_HOLE = 0.5, 0.25, 0.5
NUM_LABELS, DRAWS = (5, 10, 20, 50), 400  # of the calibration


def parts_of(
    mask: np.ndarray, num_classes: int
) -> Iterator[tuple[int, tuple[slice, slice], np.ndarray]]:
    """Yields class, window and pixels in it, bool, of each connected part of a mask `(H, W)`."""
    for class_id in range(num_classes):
        number, ids, stats, _ = cv2.connectedComponentsWithStats(
            (mask == class_id).astype(np.uint8)
        )
        for index, (left, top, width, height, area) in enumerate(stats[:number]):
            if index and area >= SMALLEST_PART:
                window = (
                    slice(max(top - MARGIN, 0), top + height + MARGIN),
                    slice(max(left - MARGIN, 0), left + width + MARGIN),
                )
                yield class_id, window, ids[window] == index


def touching_class(mask: np.ndarray, part: np.ndarray, class_id: int) -> int:
    """Finds the class with most pixels along a part; the part's own if there is none."""
    kernel = np.ones((2 * MARGIN + 1,) * 2, np.uint8)
    values = mask[cv2.dilate(part.astype(np.uint8), kernel).astype(bool) & ~part]
    values = values[(values != IGNORED) & (values != class_id)]
    return int(np.bincount(values).argmax()) if len(values) else class_id


def spoil(mask: np.ndarray, num_classes: int, strength: float, seed: int) -> np.ndarray:
    """Spoils a mask `(H, W)` uint8 of class ids and 255; strength is in [0, 1].

    Pixels of 255 get the class that the nearest pixel has: a foreign mask knows no ignored pixels.
    """
    random = np.random.RandomState(seed)  # NumPy guarantees its stream
    spoiled = mask.copy()
    for class_id, window, part in parts_of(mask, num_classes):
        fault, hole, side, place, radius = random.random_sample(5)
        around = touching_class(mask[window], part, class_id)
        if fault < CONFUSED * strength:
            step = 1 if side < 0.5 else -1
            beside = class_id + step if 0 <= class_id + step < num_classes else class_id - step
            spoiled[window][part] = beside
        elif fault > 1 - LOST * strength:
            spoiled[window][part] = around
        elif hole < WITH_HOLE * strength:
            rows, columns = np.nonzero(part)
            index = int(place * len(rows))
            disc = np.zeros(part.shape, np.uint8)
            center, radius = (int(columns[index]), int(rows[index])), (0.1 + 0.15 * radius)
            cv2.circle(disc, center, int(radius * np.sqrt(len(rows))), 1, -1)
            spoiled[window][part & (disc == 1)] = around
    height, width = mask.shape
    dy, dx = (2 * random.random_sample(2) - 1) * LARGEST_SHIFT * strength * (height, width)
    ignored = spoiled == IGNORED
    if ignored.any() and not ignored.all():
        _, nearest = cv2.distanceTransformWithLabels(
            ignored.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
        )
        class_ids = np.zeros(nearest.max() + 1, np.uint8)
        class_ids[nearest[~ignored]] = spoiled[~ignored]
        spoiled[ignored] = class_ids[nearest[ignored]]
    matrix = np.float32([[1, 0, round(dx)], [0, 1, round(dy)]])
    how = dict(flags=cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
    return cv2.warpAffine(spoiled, matrix, (width, height), **how)


def calibration(counts: np.ndarray, num_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Judges the calibration by `num_labels` of n masks with `confusion`s `(n, C, C)`.

    Returns for each class the share of the draws whose bound is above the precision over all
    masks, of those that show the class, and the share that keeps the class, both `(C,)`.
    """
    random = np.random.RandomState(0)
    area, right = counts.sum(1), counts.diagonal(axis1=1, axis2=2)
    precision = right.sum(0) / area.sum(0)
    bounds = []
    for _ in range(DRAWS):
        chosen = random.choice(len(counts), num_labels, replace=False)
        bounds.append(mask_precision(area[chosen], right[chosen])[1])
    bound = np.stack(bounds)
    is_above = np.where(np.isnan(bound), np.nan, bound >= precision)
    return np.nanmean(is_above, 0), 1 - (bound < LEAST).mean(0)


def main() -> None:
    """Spoils the masks of a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('masks', type=Path, help='folder of masks of class ids, 255 for none')
    parser.add_argument('--num-classes', type=int, required=True)
    parser.add_argument('--miou', type=float, nargs='+', default=[40, 60, 80])
    parser.add_argument('--out', type=Path, required=True)
    args = parser.parse_args()
    masks = {file.name: np.array(Image.open(file)) for file in sorted(args.masks.glob('*.png'))}

    def spoiled_at(strength: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
        results, counts = {}, []
        for name, mask in masks.items():
            seed = zlib.crc32(f'0 {name}'.encode())  # whatever other masks there are
            results[name] = spoil(mask, args.num_classes, strength, seed)
            counts.append(confusion_of(mask, results[name], args.num_classes))
        return results, np.stack(counts)

    for goal in args.miou:
        low, high = 0.0, 1.0
        for _ in range(7):
            strength = (low + high) / 2
            miou = 100 * np.nanmean(iou_of(spoiled_at(strength)[1].sum(0)))
            low, high = (strength, high) if miou > goal else (low, strength)
        strength = (low + high) / 2
        results, counts = spoiled_at(strength)
        out = args.out / f'{goal:g}'
        out.mkdir(parents=True, exist_ok=True)
        for name, spoiled in results.items():
            Image.fromarray(spoiled).save(out / name)
        total = counts.sum(0)
        miou = 100 * np.nanmean(iou_of(total))
        print(f'{goal:g}: {len(results)} masks, strength {strength:.3f}, mIoU {miou:.1f}')
        rows = {'right': total.diagonal() / total.sum(0)}
        for number in NUM_LABELS:
            if number <= len(counts):
                is_above, is_kept = calibration(counts, number)
                rows[f'kept, n={number} (bound above: {np.nanmean(is_above):.0%})'] = is_kept
        for label, values in rows.items():
            print(f'  {label:32}', ' '.join(f'{value:6.1%}' for value in values), flush=True)


if __name__ == '__main__':
    main()
