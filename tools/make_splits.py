#!/usr/bin/env python
"""Writes seeded lists of images, {n}_labeled.txt and {n}_unlabeled.txt.

Examples:
    mmseg-cct make-splits --voc-root data/VOCdevkit/VOC2012 --out data/splits/voc
    mmseg-cct make-splits --list data/camvid/train.txt -n 5 20 50 100 --out lists/camvid
    mmseg-cct make-splits --images data/mine/images --masks data/mine/masks -n 100 \\
        --out data/splits/mine
    mmseg-cct make-splits --images data/cityscapes/leftImg8bit/train \\
        --suffix _leftImg8bit.png -n 100 372 744 --out data/splits/cityscapes
    mmseg-cct make-splits --from-public CCT/dataloaders/voc_splits \\
        --out data/splits/voc_public
    mmseg-cct make-splits --from-unimatch UniMatch/splits/pascal --out data/splits/voc
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import InputPath, integer_from, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import locked_folder, output_file, read_utf8, remove_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mmseg_cct.datasets.splits import Split

VOC_NUMBERS = [60, 100, 200, 300, 500, 800, 1000, 1464]


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    summary, examples = __doc__.split('\n\n', 1)
    parser = tool_parser(summary, epilog=examples)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        '--list', type=InputPath, metavar='FILE', help='text file with one image name per line'
    )
    source.add_argument(
        '--images', type=InputPath, metavar='DIR', help='folder of images, with its subfolders'
    )
    source.add_argument(
        '--voc-root',
        type=InputPath,
        metavar='DIR',
        help='PASCAL VOC 2012: labelled images come from its train list (all of it at 1464), '
        'the rest of trainaug is unlabelled',
    )
    source.add_argument(
        '--from-public',
        type=InputPath,
        metavar='DIR',
        help='two-column lists of the public CCT code (its folder dataloaders/voc_splits)',
    )
    source.add_argument(
        '--from-unimatch',
        type=InputPath,
        metavar='DIR',
        help="the standard splits from UniMatch's lists (its folder splits/pascal or "
        'splits/cityscapes, or one partition of them)',
    )
    parser.add_argument('--out', metavar='DIR', required=True, help='folder for the lists')
    parser.add_argument(
        '-n',
        '--num-labeled',
        metavar='N',
        nargs='+',
        type=int,
        help=f'numbers of labelled images; default for VOC: {" ".join(map(str, VOC_NUMBERS))}; '
        "for the public lists and UniMatch's: all there are",
    )
    parser.add_argument(
        '--seed', type=integer_from(0), default=0, help='seed of the draw (default: 0)'
    )
    parser.add_argument(
        '--suffix',
        help='end of the image names under --images, cut off in the lists as MMSeg data sets '
        'expect (_leftImg8bit.png for Cityscapes); default: every image format, extension cut off',
    )
    parser.add_argument(
        '--masks',
        type=InputPath,
        metavar='DIR',
        help='folder of masks of some of the --images: labelled images are drawn among those with '
        'a mask; default: among all, for masks that are still to be made',
    )
    parser.add_argument(
        '--mask-suffix',
        metavar='END',
        help="end of a mask's name, after that of its image, such as _mask.png (default: .png)",
    )
    parser.add_argument('--force', action='store_true', help='replace lists that differ')
    return parser.parse_args()


def make_splits(args: argparse.Namespace) -> dict[int, Split]:
    """Draws or reads the splits, by their number of labelled images."""
    from mmseg_cct.datasets.files.image_files import find_images, masks_of_images, read_list
    from mmseg_cct.datasets.splits import (
        draw_split,
        read_public_splits,
        read_unimatch_splits,
        read_voc_lists,
    )

    for option, value, needed, folder in (
        ('--masks', args.masks, '--images', args.images),
        ('--suffix', args.suffix, '--images', args.images),
        ('--mask-suffix', args.mask_suffix, '--masks', args.masks),
    ):
        if value is not None and not folder:
            raise UserError(option, f'has no {needed} beside it', 'the folder')
    mask_suffix = args.mask_suffix or '.png'
    if folder := args.from_public or args.from_unimatch:
        read = read_public_splits if args.from_public else read_unimatch_splits
        splits = read(folder)
        for number in args.num_labeled or ():
            if number not in splits:
                raise UserError(
                    f'-n {number}',
                    f'no such list in {folder}',
                    f'one of {", ".join(map(str, splits))}',
                )
        return {number: splits[number] for number in args.num_labeled or splits}
    if args.voc_root:
        train, trainaug = read_voc_lists(args.voc_root)
        numbers = args.num_labeled or VOC_NUMBERS
        return {number: draw_split(train, number, args.seed, trainaug) for number in numbers}
    if not args.num_labeled:
        raise UserError('-n', 'missing', 'one or more numbers of labelled images')
    names = read_list(args.list) if args.list else list(find_images(args.images, args.suffix))
    if not args.masks:
        return {number: draw_split(names, number, args.seed) for number in args.num_labeled}
    masks, _ = masks_of_images(args.masks, mask_suffix, names)
    candidates = [name for name in names if name in masks]
    if not candidates:
        raise UserError(args.masks, f'no mask of {args.images}', f'NAME{mask_suffix}')
    return {number: draw_split(candidates, number, args.seed, names) for number in args.num_labeled}


def write_splits(
    splits: dict[int, Split], folder: Path, force: bool = False, inputs: Iterable[str] = ()
) -> None:
    """Writes splits and prints a line for each; a list without images is left out.

    Raises:
        UserError: The folder holds images or is read, or holds another list of that name and
            `force` is not set.
    """
    from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES, write_list

    for path in folder.iterdir() if folder.is_dir() else ():
        if path.suffix.lower() in IMAGE_SUFFIXES:
            raise UserError('--out', f'{folder} holds {path.name}', 'a folder without images')
    lists = {
        folder / f'{number}_{part}.txt': getattr(split, part)
        for number, split in splits.items()
        for part in split._fields
    }
    # Compare all before writing any: experiments may rest on the lists that are there.
    for path, names in lists.items():
        output_file(path, inputs, overwrite=True)
        if not force and path.exists() and _lines(path) != names:
            raise UserError(path, 'exists and differs', 'a new folder or --force')
    with locked_folder(folder, 'another make_splits'):
        remove_parts(folder)
        for path, names in lists.items():
            if names:
                write_list(path, names)
            else:  # no data set takes an empty list
                path.unlink(missing_ok=True)
                print(f'{path}: not written, because no image is left')
    for number, split in splits.items():
        print(f'{folder}/{number}_*.txt: {len(split.labeled)} labelled, {len(split.unlabeled)} not')


def _lines(path: Path) -> list[str]:
    return [line for line in re.split(r'[\r\n]', read_utf8(path, 'a list of images')) if line]


def main() -> None:
    """Runs the tool."""
    args = parse_args()
    with running(args):
        read = filter(None, (args.list, args.images, args.masks))
        write_splits(make_splits(args), Path(args.out), args.force, list(read))


if __name__ == '__main__':
    main()
