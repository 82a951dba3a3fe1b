#!/usr/bin/env python
"""Does the ranking of tools/next_batch.py find the images that a model gets wrong?

Takes a set whose masks are known, by default the test set of the config, and compares the true
error (the share of wrong pixels) of the images ranked first with that of random ones.

Example:
    python benchmarks/ranking.py configs/demo/cct_shapes.py work_dirs/demo/cct/iter_1400.pth
"""

import argparse

import cv2
import numpy as np
from _measure import say, say_table
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from tqdm import tqdm

from mmseg_cct.analysis.ranking import disagreement, load_training_model
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.load import load_config

DRAWS = 10000


def evaluate(
    config_file: str, checkpoint: str, device: str | None, measure: str
) -> tuple[dict, np.ndarray]:
    """Scores of the images, by perturbation and overall, and their true errors in [0, 1]."""
    config = load_config(config_file, {})
    init_default_scope(config.get('default_scope', 'mmseg'))
    dataset = DATASETS.build(config.test_dataloader.dataset)
    model = load_training_model(config, checkpoint, device)
    counts = [item.num_decoders for item in model.auxiliary_head.perturbations.values()]
    groups = np.repeat(list(model.auxiliary_head.perturbations), counts)
    ignored = model.decode_head.ignore_index
    scores, errors = [], []
    for index in tqdm(range(len(dataset)), unit='image'):
        data = dataset[index]
        truth = data['data_samples'].gt_sem_seg.data[0].numpy()
        maps, labels, _ = disagreement(model, data, measure=measure)
        size = truth.shape[1], truth.shape[0]
        labels = cv2.resize(labels.numpy().astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
        counted = truth != ignored
        if counted.any():
            scores.append(maps.mean((1, 2)).numpy())
            errors.append((labels != truth)[counted].mean())
    by_decoder = np.stack(scores, axis=1)
    by_group = {'all': by_decoder.mean(0)}
    by_group |= {name: by_decoder[groups == name].mean(0) for name in dict.fromkeys(groups)}
    return by_group, np.array(errors)


def main() -> None:
    """Prints a row for each score: the error of the images that it ranks first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config')
    parser.add_argument('checkpoint', help='checkpoint with auxiliary decoders')
    parser.add_argument('--share', type=float, default=0.1, help='share of images (default: 0.1)')
    parser.add_argument('--measure', choices=['labels', 'distance'], default='labels')
    parser.add_argument('--device')
    args = parser.parse_args()
    with user_errors_as_one_line():
        scores, errors = evaluate(args.config, args.checkpoint, args.device, args.measure)
    chosen = max(1, round(args.share * len(errors)))
    rng = np.random.default_rng(0)
    random = [errors[rng.permutation(len(errors))[:chosen]].mean() for _ in range(DRAWS)]
    say(
        f'{chosen} of {len(errors)} images; wrong pixels of random ones {errors.mean():.4f}, '
        f'of the best of 20 draws {np.quantile(random, 0.95):.4f}, '
        f'of the worst images {np.sort(errors)[-chosen:].mean():.4f}'
    )
    rows = []
    for name, score in scores.items():
        first = np.argsort(-score, kind='stable')[:chosen]
        correlation = np.corrcoef(score, errors)[0, 1]
        rows.append(
            [
                ('score', name),
                ('wrong pixels of the first', f'{errors[first].mean():.4f}'),
                ('correlation', f'{correlation:.2f}'),
            ]
        )
    say_table('The images that are ranked first', rows)


if __name__ == '__main__':
    main()
