#!/usr/bin/env python
"""Writes masks of class ids from exports of labelling tools.

The format is detected from the content: COCO, CVAT for images 1.1, CVAT's segmentation masks, Label
Studio, labelme, or masks of colours. OUT gets images, masks and classes.json, which
mmseg-cct new-config reads. Images without annotation get no mask: they are unlabelled.

Examples:
    mmseg-cct import-masks annotations.json --images photos --rest background --out data/mine
    mmseg-cct import-masks corrected.zip --out data/mine --overwrite
    mmseg-cct import-masks annotations.json --images photos --rest background \\
        --out data/mine --rename car=vehicle truck=vehicle glare=
    mmseg-cct import-masks coloured --images photos --out data/mine \\
        --colors background=0,0,0 crack=255,0,0
    mmseg-cct import-masks black_and_white --images photos --out data/mine \\
        --colors background=0 crack=255
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mmseg_cct.cli.arguments import InputPath, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError


def _named_color(value: str) -> tuple[str, tuple[int, int, int]]:
    name, _, numbers = value.rpartition('=')
    parts = numbers.split(',')
    if not name or len(parts) not in (1, 3) or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f'{value!r}; expected NAME=R,G,B or NAME=GREY')
    red, green, blue = map(int, parts * 3 if len(parts) == 1 else parts)
    if max(red, green, blue) > 255:
        raise argparse.ArgumentTypeError(f'{value!r}; expected numbers from 0 to 255')
    return name, (red, green, blue)


def _new_name(value: str) -> tuple[str, str | None]:
    old, _, new = value.partition('=')
    if not old or '=' not in value:
        raise argparse.ArgumentTypeError(f'{value!r}; expected OLD=NEW, or OLD= to ignore it')
    return old, new or None


def _pattern(value: str) -> tuple[str, str]:
    name, _, pattern = value.partition('=')
    if not name or pattern.count('*') != 1:
        raise argparse.ArgumentTypeError(f'{value!r}; expected NAME=*END or NAME=FOLDER/*.png')
    return name, pattern


def _by_name(pairs: list[tuple[str, Any]], option: str) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise UserError(option, 'a name is there twice', 'every name once')
    return named


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('source', type=InputPath, help='the export: a file, a folder or a ZIP')
    parser.add_argument('--out', required=True, metavar='DIR', help='data folder, new or to extend')
    parser.add_argument(
        '--images',
        type=InputPath,
        metavar='DIR',
        help="folder of the images, labelled or not (default: OUT/images, or else the export's)",
    )
    parser.add_argument(
        '--copy', action='store_true', help='copy the images into OUT; by default they are linked'
    )
    parser.add_argument(
        '--rest',
        choices=['background', 'ignore'],
        help='what to make of pixels that no shape covers: background if all objects are drawn, '
        'ignore if only some are (required for the first import)',
    )
    parser.add_argument(
        '--empty-is-background',
        action='store_true',
        help='images that the export lists without a shape are all background, because somebody '
        'looked at them; by default they are unlabelled',
    )
    parser.add_argument(
        '--colors',
        nargs='+',
        type=_named_color,
        metavar='NAME=R,G,B',
        help='for masks of colours: their classes in the order of their ids; NAME=V is a grey. '
        'Without it, the colours in the masks are listed',
    )
    parser.add_argument(
        '--rename',
        nargs='+',
        type=_new_name,
        default=[],
        metavar='OLD=NEW',
        help='rename or merge classes; the pixels of OLD= are ignored. Later imports do the same',
    )
    parser.add_argument(
        '--mask-suffix',
        default='',
        metavar='END',
        help="with --colors: end of a mask's name, after that of its image, such as _mask.png",
    )
    parser.add_argument(
        '--mask-of',
        nargs='+',
        type=_pattern,
        metavar='NAME=*END',
        help="for black-and-white masks of one class each: the masks' names by class, with * for "
        "the image's name, such as 'crack=*_crack.png' or 'crack=crack/*.png'; later classes cover "
        'earlier ones',
    )
    parser.add_argument(
        '--batch',
        type=InputPath,
        metavar='DIR',
        help='the batch of next-batch that was corrected: images that were skipped, or whose '
        'prediction came back untouched, get no mask',
    )
    parser.add_argument(
        '--boxes',
        choices=['fill', 'ignore'],
        help='fill: all boxes are regions; ignore: they bound other shapes, and what else is in '
        'them is ignored. By default, an error where a class has boxes and other shapes in one '
        'image; those of COCO without a polygon are ignored',
    )
    parser.add_argument(
        '--crowds',
        choices=['ignore', 'draw'],
        default='ignore',
        help="what to make of COCO's regions with iscrowd, which some tools set on every mask",
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the masks in OUT that differ'
    )
    return parser.parse_args()


def main() -> None:
    """Imports the masks and says what changed and what went wrong."""
    args = parse_args()
    with running(args):
        from tqdm import tqdm

        from mmseg_cct.annotations.class_table import data_folder
        from mmseg_cct.annotations.importer import ImportOptions, import_masks

        options = ImportOptions(
            images=args.images,
            undrawn=args.rest,
            colors=_by_name(args.colors, '--colors') if args.colors else None,
            mask_suffix=args.mask_suffix,
            class_masks=_by_name(args.mask_of, '--mask-of') if args.mask_of else None,
            rename=_by_name(args.rename, '--rename'),
            batch=args.batch,
            empty=args.empty_is_background,
            boxes=args.boxes,
            draw_crowds=args.crowds == 'draw',
            overwrite=args.overwrite,
            copy=args.copy,
        )
        progress = partial(tqdm, unit='image', delay=1)
        imported = import_masks(args.source, args.out, options, progress)
        print(f'{args.out}: {imported.describe()}')
        imported.require_complete(args.overwrite)
        print(*_state(data_folder(Path(args.out)), list(imported.table.colors)), sep='\n')


def _state(data: Path, classes: list[str]) -> Iterator[str]:
    """Says what a data folder holds now, and what comes next."""
    from mmseg_cct.datasets.files.image_files import VAL_LIST, find_images, read_list
    from mmseg_cct.datasets.folder_summary import describe_folder, summarize_folder
    from mmseg_cct.writer.next_commands import commands_after_import

    try:
        summary = summarize_folder(data, classes, find_images(data / 'images'))
    except UserError as error:  # what is imported is there, and new_config would refuse it
        yield f'warning: {error}'
        return
    names = read_list(data / VAL_LIST) if (data / VAL_LIST).exists() else []
    held_out = [name for name in names if name in summary.labels]
    yield from ('', describe_folder(summary, classes, held_out), '')
    if commands := commands_after_import(data, summary, classes):
        yield from ('Next:', *(f'  {line}' for line in commands))


if __name__ == '__main__':
    main()
