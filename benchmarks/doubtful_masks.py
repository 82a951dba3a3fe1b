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
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.image_files import find_images, find_masks
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.engine.doubtful_masks import judge_masks
from mmseg_cct.engine.frozen_features import load_encoder

NUM_MASKS = 5, 7, 10, 20
SHARE = 5  # one of so many masks is exchanged


def main() -> None:
    """Prints a row of the table of docs/own_data.md for each number of masks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('images')
    parser.add_argument('masks')
    parser.add_argument('--num-classes', type=int, required=True, help='larger ids are ignored')
    parser.add_argument('--model', default='cct_mbv2-jpu', help='a file in configs/_base_/models')
    parser.add_argument('--sets', type=int, default=300)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()

    images, masks = find_images(args.images), find_masks(args.masks, '.png')
    encode = load_encoder(load_config(f'_base_/models/{args.model}', {}).model)
    known: dict[bytes, np.ndarray] = {}  # features: a picture is in many sets
    names = sorted(masks)

    def encoder(picture: np.ndarray) -> np.ndarray:
        key = hashlib.sha256(picture).digest()
        if key not in known:
            known[key] = encode(picture).astype(np.float16)
        return known[key].astype(np.float32)

    with TemporaryDirectory() as folder:
        for index, name in enumerate(names):
            mask = read_mask(masks[name])
            mask[mask >= args.num_classes] = IGNORE_INDEX
            masks[name] = str(Path(folder, f'{index}.png'))
            Image.fromarray(mask.astype(np.uint8)).save(masks[name])
        for number in NUM_MASKS:
            num_wrong = max(number // SHARE, 1)
            falsely_named, found = 0, 0
            for index in range(args.sets):
                rng = np.random.default_rng((args.seed, number, index))
                drawn = [names[i] for i in rng.choice(len(names), number + num_wrong, False)]
                right = {name: masks[name] for name in drawn[:number]}
                wrong = dict(zip(drawn, (masks[name] for name in drawn[number:])))
                for is_spoiled in (False, True):
                    judged = judge_masks(
                        encoder, images, {**right, **wrong} if is_spoiled else right,
                        args.num_classes,
                    )  # fmt: skip
                    doubtful = {mask.name for mask in judged if mask.is_doubtful}
                    if is_spoiled:
                        found += len(doubtful & wrong.keys())
                    else:
                        falsely_named += bool(doubtful)
            print(
                f'| {number} | {100 * falsely_named / args.sets:.1f} % '
                f'| {100 * found / args.sets / num_wrong:.0f} % |',
                flush=True,
            )


if __name__ == '__main__':
    main()
