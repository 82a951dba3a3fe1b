"""Photometrically strong views of an unlabelled crop."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cv2
import mmcv
import numpy as np
from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS
from torch import from_numpy

from mmseg_cct.utils.ranges import in_unit, number, ranges


class Photometry(NamedTuple):
    """The operations of one strong view, in order."""

    jitter: tuple[tuple[str, float], ...]  # names and factors; 1 changes nothing, for the hue 0
    gray: bool  # whether to turn the view grey
    sigma: float | None  # standard deviation of the Gaussian blur in pixels


_COLOR: dict[str, Callable[..., np.ndarray]] = dict(
    brightness=mmcv.adjust_brightness, contrast=mmcv.adjust_contrast, saturation=mmcv.adjust_color
)


def apply_photometry(image: np.ndarray, photometry: Photometry) -> np.ndarray:
    """Changes the colours and sharpness of an image `(H, W, C)`, keeping its shape and type.

    Three channels are BGR. Values are uint8, or float32 in [0, 255] (see `LoadChannels`). With
    another number of channels, saturation and hue do not apply, and grey is the mean of the
    channels.
    """
    is_color = image.shape[2] == 3
    # mmcv's own shift of the hue would cut floats to 8 bits
    hue = mmcv.adjust_hue if image.dtype == np.uint8 else _shift_hue
    for name, factor in photometry.jitter:
        if is_color:
            image = dict(_COLOR, hue=hue)[name](image, factor, backend='cv2')
        elif name in ('brightness', 'contrast'):
            fixed = image.mean(dtype=np.float32) if name == 'contrast' else np.float32(0)
            changed = (image.astype(np.float32) - fixed) * factor + fixed
            image = changed.clip(0, 255).astype(image.dtype)
    if photometry.gray and is_color:
        image = mmcv.gray2bgr(mmcv.bgr2gray(image))
    elif photometry.gray:
        mean = image.mean(2, keepdims=True, dtype=np.float32)
        image = np.broadcast_to(mean, image.shape).astype(image.dtype)
    if photometry.sigma is not None:
        image = cv2.GaussianBlur(image, ksize=(0, 0), sigmaX=photometry.sigma).reshape(image.shape)
    return image


def _shift_hue(image: np.ndarray, shift: float, **_: Any) -> np.ndarray:
    hsv = cv2.cvtColor(image / 255, cv2.COLOR_BGR2HSV)  # the hue in degrees
    hsv[..., 0] = (hsv[..., 0] + 360 * shift) % 360
    return 255 * cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)


@TRANSFORMS.register_module()
class StrongViews(BaseTransform):
    """Adds strong views of the same crop and flip, for the unlabelled branch.

    Comes after `PackSegInputs` (or a subclass), so that all views stay aligned. The packed image is
    the weak view and stays unchanged; `SemiSegDataset` turns the strong ones into the branches
    `unlabeled_strong_0`, `unlabeled_strong_1`, ... beside `unlabeled`. Each view gets colour jitter
    in random order, then grey, then blur; the defaults are the usual ones in the field. Filled
    pixels that the sample marks (see `MarkValidPixels`) keep their colour, so they look the same in
    all views, whether a transform or the preprocessor filled them.

    Args:
        num_views: Number of strong views, each drawn independently.
        jitter_prob: Probability of the colour jitter.
        brightness: b in [0, 1]; the factor is drawn from U[1 - b, 1 + b]. 0 changes nothing.
        contrast: Like `brightness`.
        saturation: Like `brightness`.
        hue: Largest shift in [0, 0.5], as a share of the colour circle. Set it to 0 if hue tells
            the classes apart.
        gray_prob: Probability of turning the view grey.
        blur_prob: Probability of the Gaussian blur.
        blur_sigma: Range of its standard deviation in pixels.

    Examples:
        >>> from mmseg.structures import SegDataSample
        >>> from torch import randint, uint8
        >>> packed = dict(inputs=randint(256, (3, 8, 8), dtype=uint8), data_samples=SegDataSample())
        >>> views = StrongViews(num_views=2)(packed)['strong_views']
        >>> [(tuple(view.shape), view.dtype) for view in views]
        [((3, 8, 8), torch.uint8), ((3, 8, 8), torch.uint8)]
    """

    @ranges(
        jitter_prob=in_unit,
        brightness=in_unit,
        contrast=in_unit,
        saturation=in_unit,
        hue=number(0, 0.5),
        gray_prob=in_unit,
        blur_prob=in_unit,
    )
    def __init__(
        self,
        num_views: int = 1,
        jitter_prob: float = 0.8,
        brightness: float = 0.5,
        contrast: float = 0.5,
        saturation: float = 0.5,
        hue: float = 0.25,
        gray_prob: float = 0.2,
        blur_prob: float = 0.5,
        blur_sigma: Sequence[float] = (0.1, 2.0),
    ) -> None:
        self.num_views = num_views
        self.jitter_prob = jitter_prob
        self.magnitudes = dict(brightness=brightness, contrast=contrast)
        self.magnitudes |= dict(saturation=saturation, hue=hue)
        self.gray_prob = gray_prob
        self.blur_prob = blur_prob
        self.blur_sigma = tuple(blur_sigma)

    def draw(self) -> Photometry:
        """Draws the operations of one view from NumPy's global generator."""
        jitter = []
        if np.random.rand() < self.jitter_prob:
            names = [name for name, magnitude in self.magnitudes.items() if magnitude > 0]
            for name in np.random.permutation(names).tolist():
                shift = np.random.uniform(-self.magnitudes[name], self.magnitudes[name])
                jitter.append((name, shift if name == 'hue' else 1 + shift))
        gray = bool(np.random.rand() < self.gray_prob)
        blurs = np.random.rand() < self.blur_prob
        low, high = self.blur_sigma
        sigma = float(np.random.uniform(low, high)) if blurs else None
        return Photometry(tuple(jitter), gray, sigma)

    def transform(self, results: dict) -> dict:
        """Adds `strong_views`, tensors like the packed `inputs` `(3, H, W)`, uint8 in BGR."""
        image = np.ascontiguousarray(results['inputs'].numpy().transpose(1, 2, 0))
        filled = None
        if 'valid_mask' in results['data_samples']:
            filled = ~results['data_samples'].valid_mask.data[0].numpy()
        results['strong_views'] = []
        for _ in range(self.num_views):
            view = apply_photometry(image, self.draw())
            if filled is not None:
                view = np.where(filled[..., None], image, view)
            view = np.ascontiguousarray(view.transpose(2, 0, 1))
            results['strong_views'].append(from_numpy(view))
        return results
