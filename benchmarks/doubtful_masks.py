#!/usr/bin/env python
"""Measures how often `check-masks` names a right mask, and how often that of another image.

Sets of n images are drawn from a folder whose masks are right. They are judged as they are, and
with a fifth of their masks, at least one, exchanged for those of images outside the set.

Example:
    python benchmarks/doubtful_masks.py data/idd_lite/images/train data/idd_lite/masks/train \
        --num-classes 7
"""

import argparse
import hashlib
from collections.abc import Callable

import numpy as np

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.image_files import find_images, find_masks
from mmseg_cct.engine.doubtful_masks import judge_masks
from mmseg_cct.engine.frozen_features import load_encoder

Encoder = Callable[[np.ndarray], np.ndarray]
NUM_MASKS = 5, 7, 10, 20
SHARE = 5  # one of so many masks is exchanged


def remembered(encode: Encoder) -> Encoder:
    """An encoder that keeps the features of a picture, which is in many sets."""
    known: dict[bytes, np.ndarray] = {}

    def encoder(picture: np.ndarray) -> np.ndarray:
        key = hashlib.sha256(picture).digest()
        if key not in known:
            known[key] = encode(picture).astype(np.float16)
        return known[key].astype(np.float32)

    return encoder


def main() -> None:
    """Prints the figures of docs/experiments.md for each number of masks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('images')
    parser.add_argument('masks')
    parser.add_argument('--num-classes', type=int, required=True)
    parser.add_argument('--sets', type=int, default=300)
    args = parser.parse_args()

    images, masks = find_images(args.images), find_masks(args.masks, '.png')
    encoder = remembered(load_encoder(load_config('_base_/models/cct_mbv2-jpu', {}).model))
    names = sorted(masks)
    for number in NUM_MASKS:
        num_wrong = max(number // SHARE, 1)
        falsely_named, found = 0, 0
        for index in range(args.sets):
            rng = np.random.default_rng((0, number, index))
            drawn = [names[i] for i in rng.choice(len(names), number + num_wrong, False)]
            right = {name: masks[name] for name in drawn[:number]}
            wrong = dict(zip(drawn, (masks[name] for name in drawn[number:])))
            of_right, of_spoiled = (
                {
                    mask.name
                    for mask in judge_masks(encoder, images, files, args.num_classes)
                    if mask.is_doubtful
                }
                for files in (right, {**right, **wrong})
            )
            falsely_named += bool(of_right)
            found += len(of_spoiled & wrong.keys())
        print(
            f'| {number} | {100 * falsely_named / args.sets:.1f} % '
            f'| {100 * found / args.sets / num_wrong:.0f} % |',
            flush=True,
        )


if __name__ == '__main__':
    main()
