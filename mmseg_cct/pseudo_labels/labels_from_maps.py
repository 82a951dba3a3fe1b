"""Pseudo labels from class activation maps, by two thresholds (section 3.3) and a dense CRF.

The CRF (Krähenbühl and Koltun, 2011) is pydensecrf's.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import UserError


class Thresholds(NamedTuple):
    """Thresholds of scores; a pixel between the two is ignored."""

    background: float = 0.05  # θ_bg; a pixel with all scores below it is background
    foreground: float = 0.30  # θ_fg; one with a score above it gets the class of its highest score


def labels_from_maps(
    maps: np.ndarray, class_ids: Sequence[int], background: int | None, thresholds: Thresholds
) -> np.ndarray:
    """Labels pixels with a score above θ_fg, and those with all scores below θ_bg.

    There is a map `(C_i, H, W)` in [0, 1] for each of the C_i label ids in the image. The id of the
    background may be None, which ignores low scores too. Returns label ids `(H, W)` uint8, 255
    where ignored.
    """
    ids = np.array([IGNORE_INDEX if background is None else background, *class_ids], np.uint8)
    first, score = strongest(maps)
    labels = np.where(score > thresholds.foreground, ids[first], np.uint8(IGNORE_INDEX))
    return np.where(score < thresholds.background, ids[0], labels)


def strongest(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the index, from 1 on, and the score of the highest map `(C_i, H, W)` at each pixel.

    Both are `(H, W)`, and all zeros if there are no maps.
    """
    if not len(maps):
        return np.zeros(maps.shape[1:], np.intp), np.zeros(maps.shape[1:], np.float32)
    return maps.argmax(0) + 1, maps.max(0)


@dataclass(frozen=True)
class DenseCRF:
    """Dense CRF on a label map: a smoothness kernel and an appearance kernel."""

    gaussian_sxy: float = 3  # width of the smoothness kernel, in pixels
    gaussian_compat: float = 3  # its weight
    bilateral_sxy: float = 50  # width of the appearance kernel in position, in pixels
    bilateral_srgb: float = 5  # its width in colour, in [0, 255]
    bilateral_compat: float = 10  # its weight
    iterations: int = 10  # of mean-field inference
    gt_prob: float = 0.7  # probability in (0, 1) that a given label is right

    def __call__(self, image: np.ndarray, labels: np.ndarray, num_labels: int) -> np.ndarray:
        """Refines labels `(H, W)` in [0, num_labels) of an image `(H, W, 3)` uint8, RGB."""
        if num_labels < 2:
            return labels
        # Here, since the package is optional and slow to build
        from pydensecrf.densecrf import DenseCRF2D
        from pydensecrf.utils import unary_from_labels

        height, width = labels.shape
        crf = DenseCRF2D(width, height, num_labels)
        # 0 is the rest, a label like others, and not pydensecrf's "unsure"
        crf.setUnaryEnergy(unary_from_labels(labels, num_labels, self.gt_prob, zero_unsure=False))
        crf.addPairwiseGaussian(sxy=self.gaussian_sxy, compat=self.gaussian_compat)
        widths = dict(sxy=self.bilateral_sxy, srgb=self.bilateral_srgb)
        rgb = np.ascontiguousarray(image)
        crf.addPairwiseBilateral(**widths, rgbim=rgb, compat=self.bilateral_compat)
        marginals = np.asarray(crf.inference(self.iterations))
        return marginals.argmax(0).reshape(height, width)


def refined_labels(
    image: np.ndarray,
    maps: np.ndarray,
    class_ids: Sequence[int],
    background: int | None,
    thresholds: Thresholds,
    crf: DenseCRF,
) -> np.ndarray:
    """Pseudo labels where the CRF confirms a class or the background, as in IRNet.

    The image is `(H, W, 3)` uint8, RGB; the rest and the result are as in `labels_from_maps`.

    Each threshold splits the image into its classes and a rest without a score above it, and the
    CRF refines both splits. A pixel gets its class in the strict split (θ_fg), else the background
    if it is in the rest of the lenient split (θ_bg), else it is ignored. Without a background class
    only the strict split counts.
    """
    first, score = strongest(maps)

    # One CRF for each threshold: ignored pixels are no label that a CRF could spread.
    def cut(threshold: float) -> np.ndarray:
        return crf(image, np.where(score > threshold, first, 0), len(maps) + 1)

    strict = cut(thresholds.foreground)
    labels = np.array([IGNORE_INDEX, *class_ids], np.uint8)[strict]
    if background is not None:
        labels[(strict == 0) & (cut(thresholds.background) == 0)] = background
    return labels


def require_pydensecrf() -> None:
    """Raises an error that says how to install pydensecrf, unless it is there."""
    if importlib.util.find_spec('pydensecrf') is None:
        tools = "pip install 'cython>=3' setuptools wheel"
        build = 'pip install --no-build-isolation pydensecrf2'
        missing = 'pydensecrf is not installed, which the dense CRF needs; run'
        raise UserError(missing, f'{tools} && {build}, or pass --no-crf')
