"""Writes a page of masks beside what the other masks expect, most doubtful first."""

from collections.abc import Sequence
from pathlib import Path, PurePath

import cv2
import numpy as np

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.image_files import find_images, find_masks, training_dirs
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.datasets.folder_summary import summarize_folder
from mmseg_cct.engine.doubtful_masks import JudgedMask, contradictions, judge_masks
from mmseg_cct.engine.frozen_features import load_encoder, read_picture
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.text import counted

from .next_batch import LARGEST, REVIEW
from .review import PageImage, image_page, label_layer, label_legend, shrink

_RECORD, SCORES = 'masks.json', 'masks.csv'


def check_masks(
    data: str,
    classes: Sequence[str],
    out: str,
    *,
    model_name: str,
    number: int = 50,
    mask_suffix: str = '.png',
    device: str | None = None,
) -> tuple[list[JudgedMask], list[tuple[str, str]]]:
    """Judges the masks of a data folder and writes a page of the most doubtful ones.

    `model_name` is a file in `configs/_base_/models`, whose backbone gives the features; the page
    has `number` masks, `masks.csv` all. The result is all masks, the most doubtful first, and the
    pairs of equal images with different masks.
    """
    dirs = training_dirs(data)
    images, masks = find_images(dirs[0]), find_masks(dirs[1], mask_suffix)
    with OutputFolder(out, _RECORD, dirs):
        summarize_folder(data, classes, images, mask_suffix)  # checks each of them
        model = load_config(f'_base_/models/{model_name}', {}).model
        judged = judge_masks(load_encoder(model, device), images, masks, len(classes))
        pairs = contradictions(images, masks)
        shown = [
            _shown(mask, images[mask.name], masks[mask.name], classes) for mask in judged[:number]
        ]
        title = f'Are the masks right? {counted(len(shown), "mask")}'
        note = f'{len(shown)} of {counted(len(judged), "mask")}, most doubtful first'
        write_text(Path(out, REVIEW), image_page(title, note, shown, marks=('looked at', 'later')))
        lines = [f'{mask.score:.3f},{int(mask.is_doubtful)},{mask.name}\n' for mask in judged]
        write_text(Path(out, SCORES), ''.join(['score,doubtful,name\n', *lines]))
    return judged, pairs


def _shown(mask: JudgedMask, image: str, file: str, classes: Sequence[str]) -> PageImage:
    """Makes the pictures of a mask, and of what the others expect."""
    picture, palette = read_picture(image), class_colors(classes)
    labels = shrink(read_mask(file).astype(np.uint8), LARGEST, cv2.INTER_NEAREST)
    expected = cv2.resize(mask.expected, labels.shape[::-1], interpolation=cv2.INTER_NEAREST)
    return PageImage(
        PurePath(mask.name),
        (picture.shape[1], picture.shape[0]),
        shrink(picture, LARGEST),
        f'score {mask.score:.2f}{", doubtful" if mask.is_doubtful else ""}',
        (
            label_layer('mask', labels, classes, palette),
            label_layer('what the other masks expect', expected, classes, palette),
        ),
        label_legend(labels, classes, palette, expected),
    )
