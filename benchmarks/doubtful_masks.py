#!/usr/bin/env python
"""Measures how often a preview names a right mask, and how often that of another image.

Sets of n images are drawn from a folder whose masks are right. They are judged as they are, and
with a fifth of their masks, at least one, exchanged for those of images outside the set.

Example:
    python benchmarks/doubtful_masks.py data/idd_lite/images/train data/idd_lite/masks/train \
        --num-classes 7
"""

import argparse

import numpy as np

from mmseg_cct.datasets.files.image_files import find_images, find_masks
from mmseg_cct.engine.doubtful_masks import fit_masks
from mmseg_cct.engine.frozen_features import FINE, WhitenedFeatures, load_encoder
from mmseg_cct.writer.base_model import frozen_model

NUM_MASKS = 5, 7, 10, 20
SHARE = 5  # one of so many masks is exchanged


def main() -> None:
    """Prints the figures of docs/experiments.md for each number of masks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('images')
    parser.add_argument('masks')
    parser.add_argument('--num-classes', type=int, required=True)
    parser.add_argument('--weights', help="MobileNetV2's (default: from the model zoo)")
    parser.add_argument('--sets', type=int, default=300)
    args = parser.parse_args()

    images, masks = find_images(args.images), find_masks(args.masks, '.png')
    model = frozen_model('mbv2', args.weights)
    encoder, pool = load_encoder(model, sizes=FINE), sorted(images.values())
    features, names = WhitenedFeatures(encoder, model, pool, args.images), sorted(masks)

    def doubtful(files: dict[str, str]) -> set[str]:
        judged = fit_masks(features, images, files, args.num_classes).judged
        return {mask.name for mask in judged if mask.is_doubtful}

    for number in NUM_MASKS:
        num_wrong = max(number // SHARE, 1)
        falsely_named, named = 0, 0
        for index in range(args.sets):
            rng = np.random.default_rng((0, number, index))
            drawn = [names[i] for i in rng.choice(len(names), number + num_wrong, False)]
            right = {name: masks[name] for name in drawn[:number]}
            wrong = dict(zip(drawn, (masks[name] for name in drawn[number:])))
            falsely_named += bool(doubtful(right))
            named += len(doubtful({**right, **wrong}) & wrong.keys())
        print(
            f'| {number} | {100 * falsely_named / args.sets:.1f} % '
            f'| {100 * named / args.sets / num_wrong:.0f} % |',
            flush=True,
        )


if __name__ == '__main__':
    main()
