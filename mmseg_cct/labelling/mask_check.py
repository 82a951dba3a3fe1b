"""What a page shows of masks beside what the other masks expect."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import cv2
import numpy as np

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.engine.doubtful_masks import JudgedMask
from mmseg_cct.engine.frozen_features import read_picture

from .next_batch import LARGEST
from .review import PageImage, label_layer, label_legend, shrink


def judged_images(
    judged: Sequence[JudgedMask],
    images: Mapping[str, str],
    masks: Mapping[str, str],
    classes: Sequence[str],
) -> list[PageImage]:
    """Makes the pictures of judged masks, in their order; `images` and `masks` are by name."""
    return [_shown(mask, images[mask.name], masks[mask.name], classes) for mask in judged]


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
