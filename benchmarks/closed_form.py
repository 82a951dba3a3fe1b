#!/usr/bin/env python
"""Adds to docs/results.csv what a preview's closed form gives, without any training.

The labelled images of a seed are those of `make-splits` with it, or of `--lists`, so a row has the
same labels as the trainings of that seed; the masks of other training images are not read.
`results_page.py` writes the table.

Examples:
    python benchmarks/closed_form.py data/idd_lite --data-set idd_lite --num-classes 7 \
        --weights mobilenet_v2_backbone.pth
    python benchmarks/closed_form.py data/camvid --data-set camvid --num-classes 11 -n 5 20 50
"""

import argparse
import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from results_page import CLOSED_FORM, CSV, SPLITS, Measured, csv_text, in_order, read_runs

import mmseg_cct.plugin  # noqa: F401
from mmseg_cct.datasets.files.image_files import find_images, find_masks, read_list
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.datasets.splits import draw_split
from mmseg_cct.engine.closed_form import ious_of
from mmseg_cct.engine.doubtful_masks import fit_masks
from mmseg_cct.engine.frozen_features import FINE, WhitenedFeatures, load_encoder, read_picture
from mmseg_cct.engine.metrics.scores import confusion_of
from mmseg_cct.engine.prediction import compare
from mmseg_cct.writer.base_model import frozen_model


def main() -> None:
    """Fits each list and tests it on the whole of the other split."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('data', type=Path, help='folder with images/train and masks/train, ...')
    parser.add_argument('--data-set', choices=SPLITS, required=True)
    parser.add_argument('--num-classes', type=int, required=True, help='larger ids are ignored')
    parser.add_argument('-n', type=int, nargs='+', default=[5, 10, 20, 50])
    parser.add_argument('--seeds', type=int, nargs='+', default=[0, 1, 2, 3, 4])
    parser.add_argument(
        '--lists', help='folder with N_labeled.txt, {seed} in its name (default: of make-splits)'
    )
    parser.add_argument('--weights', help="MobileNetV2's (default: from the model zoo)")
    args = parser.parse_args()

    split, today = SPLITS[args.data_set], str(datetime.date.today())
    images = find_images(args.data / 'images/train')
    masks = find_masks(args.data / 'masks/train', '.png')
    tested = find_images(args.data / f'images/{split}')
    truth = find_masks(args.data / f'masks/{split}', '.png')
    model, pool = frozen_model('mbv2', args.weights), sorted(images.values())
    features = WhitenedFeatures(load_encoder(model, sizes=FINE), model, pool, str(args.data))
    list_file, names = args.data / 'train.txt', list(images)
    if args.data_set.startswith('camvid'):  # its lists were drawn from this file
        names = list_file.read_text().split()
    runs = {run[:6]: run for run in read_runs()}

    def labels_of(path: str) -> np.ndarray:
        ids = read_mask(path).astype(np.uint8)
        return np.where(ids < args.num_classes, ids, np.uint8(IGNORE_INDEX))

    with TemporaryDirectory() as folder:
        for name in names:  # void as 255
            Image.fromarray(labels_of(masks[name])).save(Path(folder, f'{name}.png'))
        for number in args.n:
            for seed in args.seeds:
                if args.lists:
                    labeled = read_list(f'{args.lists.format(seed=seed)}/{number}_labeled.txt')
                else:
                    labeled = draw_split(names, number, seed).labeled
                chosen = {name: str(Path(folder, f'{name}.png')) for name in labeled}
                fitted = fit_masks(features, images, chosen, args.num_classes)
                confusion = np.zeros((args.num_classes, args.num_classes), np.int64)
                for name, path in tested.items():
                    picture = read_picture(path)
                    logits = fitted.discriminant(features(path, picture))
                    maps = torch.from_numpy(logits).permute(2, 0, 1)
                    ids = compare(maps, picture.shape[:2], False, False).class_ids.numpy()
                    confusion += confusion_of(labels_of(truth[name]), ids, args.num_classes)
                miou = round(100 * float(np.nanmean(ious_of(confusion))), 1)
                run = Measured(args.data_set, split, number, 0, CLOSED_FORM, seed, miou, '', today)
                runs[run[:6]] = run
                print(run, flush=True)
                CSV.write_text(csv_text(in_order(runs.values())), encoding='utf-8')


if __name__ == '__main__':
    main()
