#!/usr/bin/env python
"""Writes image-level labels from a CSV file or from masks.

The annotation file has the format of mmpretrain's MultiLabelDataset, which the classifiers of
configs/weak and mmseg-cct make-pseudo-labels read.

Examples:
    mmseg-cct make-image-labels --csv labels.csv --images data/mine/images \\
        --classes background crack rust --background background --out data/mine/labels.json
    mmseg-cct make-image-labels --masks data/camvid/masks/train \\
        --images data/camvid/images/train --dataset CamVidDataset --min-pixels 500 \\
        --out work_dirs/weak_labels/train.json
"""

import argparse
import inspect
from collections import Counter

from mmseg_cct.cli.arguments import InputPath, add_overwrite, integer_from, tool_parser
from mmseg_cct.cli.start import register, running
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import output_file


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        '--csv', type=InputPath, metavar='FILE', help='lines "image,class;class" under a header'
    )
    source.add_argument(
        '--masks', type=InputPath, metavar='DIR', help='masks named like the images, but .png'
    )
    classes = parser.add_mutually_exclusive_group(required=True)
    classes.add_argument('--classes', nargs='+', metavar='NAME', help='in the order of their ids')
    classes.add_argument(
        '--dataset', metavar='TYPE', help='take the classes of this data set type, for example '
        'CamVidDataset or PascalVOCDataset'
    )  # fmt: skip
    parser.add_argument(
        '--images', type=InputPath, required=True, metavar='DIR', help='folder of the images'
    )
    parser.add_argument('--out', required=True, metavar='FILE', help='the JSON file to write')
    parser.add_argument(
        '--background', nargs='+', default=[], metavar='NAME', help='classes that are not labels'
    )
    parser.add_argument(
        '--list', type=InputPath, metavar='FILE', help='list of image names (default: all images)'
    )
    parser.add_argument(
        '--min-pixels',
        type=integer_from(1),
        help='minimum pixels of a class in a mask (default: 1)',
    )
    add_overwrite(parser)
    return parser.parse_args()


def make_image_labels(args: argparse.Namespace) -> str:
    """Writes the annotation file; returns its summary, below a warning of unused classes."""
    from mmseg_cct.datasets.files.image_files import find_images
    from mmseg_cct.datasets.files.labels import check_names

    if args.csv and args.min_pixels:
        raise UserError(f'--min-pixels {args.min_pixels}', 'counts in masks', '--masks')
    names, label_map, reduces = args.classes, None, False
    if names:
        check_names(names, '--classes')
    if args.dataset:
        register()
        from mmseg.registry import DATASETS

        dataset = DATASETS.get(args.dataset)
        if dataset is None or 'classes' not in getattr(dataset, 'METAINFO', {}):
            raise UserError(f'--dataset {args.dataset}', 'no data set of MMSeg with class names')
        names = list(dataset.METAINFO['classes'])
        label_map = dataset.get_label_map() if hasattr(dataset, 'get_label_map') else None
        reduces = _reduces_zero_label(dataset)
    for name in args.background:
        if name not in names:
            raise UserError(f'--background {name}', 'not a class', f'one of {", ".join(names)}')
    classes = [name for name in names if name not in args.background]
    if not classes:
        raise UserError(
            f'--background {" ".join(args.background)}',
            'leaves no class',
            f'some of {", ".join(names)} only',
        )

    register()
    from mmseg_cct.pseudo_labels.image_labels import (
        labels_from_masks,
        labels_from_table,
        write_annotations,
    )

    images = find_images(args.images)
    listed = _listed(args.list, images, args.images) if args.list else images
    if args.csv:
        table = labels_from_table(args.csv, images, classes)
        labels = {name: ids for name, ids in table.items() if name in listed}
    else:
        labels = labels_from_masks(
            args.masks, listed, names, classes, label_map, args.min_pixels or 1, reduces
        )
    write_annotations(args.out, labels, images, args.images, classes)
    counts = Counter(label for ids in labels.values() for label in ids)
    shares = ', '.join(f'{name} {counts[index]}' for index, name in enumerate(classes))
    summary = f'wrote {args.out}: {len(labels)} images; with each class: {shares}'
    absent = [name for index, name in enumerate(classes) if not counts[index]]
    if absent:
        summary = (
            f'warning: {args.out}: {", ".join(absent)} ({len(absent)} of {len(classes)} classes) '
            f'in none of the {len(labels)} images; expected each class in one\n{summary}'
        )
    return summary


def _reduces_zero_label(dataset: type) -> bool:
    """Whether 0 is void in the masks, by a constructor of the data set or of its bases."""
    for base in dataset.__mro__:
        argument = inspect.signature(base).parameters.get('reduce_zero_label')
        if argument is not None:
            return argument.default is True
    return False


def _listed(file: str, images: dict[str, str], folder: str) -> dict[str, str]:
    from mmseg_cct.datasets.files.image_files import find_listed, read_list

    listed = {}
    for line in read_list(file):
        name = find_listed(line, images)
        if name is None:
            raise UserError(file, f'no image {line} in {folder}', 'those of the folder')
        listed[name] = images[name]
    return listed


def main() -> None:
    """Writes the labels and prints their summary."""
    args = parse_args()
    with running(args):
        inputs = filter(None, (args.csv, args.masks, args.images, args.list))
        output_file(args.out, inputs, overwrite=args.overwrite)
        print(make_image_labels(args))


if __name__ == '__main__':
    main()
