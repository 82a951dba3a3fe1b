"""Writes a page of masks beside what the other masks expect, most doubtful first."""

from collections.abc import Sequence
from pathlib import Path, PurePath

import cv2

from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS
from mmseg_cct.datasets.files.image_files import find_images, find_masks
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.layouts import training_dirs
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

    `model_name` is a file in `configs/_base_/models`, whose backbone gives the features; `number`
    masks are in the page, and all in `masks.csv`.

    Returns:
        All masks, the most doubtful first, and the pairs of equal images with different masks.

    Raises:
        UserError: If the masks are wrong or fewer than five, or the weights cannot be fetched.
    """
    dirs = training_dirs(data)
    images, masks = find_images(dirs[0]), find_masks(dirs[1], mask_suffix)
    with OutputFolder(out, _RECORD, dirs):
        summarize_folder(data, classes, images, mask_suffix)  # checks each of them
        encoder = load_encoder(load_config(str(CONFIGS / f'_base_/models/{model_name}.py'), {}).model, device)
        judged = judge_masks(encoder, images, masks, len(classes))
        pairs = contradictions(images, masks)
        palette, shown = class_colors(classes), []
        for mask in judged[:number]:
            picture, ids = read_picture(images[mask.name]), read_mask(masks[mask.name]).astype('uint8')
            size = picture.shape[1], picture.shape[0]
            photo, ids = shrink(picture, LARGEST), shrink(ids, LARGEST, cv2.INTER_NEAREST)
            expected = cv2.resize(mask.expected, ids.shape[::-1], interpolation=cv2.INTER_NEAREST)
            detail = f'score {mask.score:.2f}{", doubtful" if mask.is_doubtful else ""}'
            layers = [
                label_layer(caption, labels, classes, palette)
                for caption, labels in (('mask', ids), ('what the other masks expect', expected))
            ]
            legend = label_legend(ids, classes, palette)
            shown.append(PageImage(PurePath(mask.name), size, photo, detail, layers, legend))
        title, note = f'Are the masks right? {counted(len(shown), "mask")}', f'{len(shown)} of {counted(len(judged), "mask")}, most doubtful first'
        write_text(Path(out, REVIEW), image_page(title, note, shown, marks=('looked at', 'later')))
        lines = [f'{mask.score:.3f},{int(mask.is_doubtful)},{mask.name}\n' for mask in judged]
        write_text(Path(out, SCORES), ''.join(['score,doubtful,name\n', *lines]))
    return judged, pairs
