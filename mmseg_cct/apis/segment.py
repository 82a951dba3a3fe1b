"""Segments a stream of images; loading runs ahead, and a GPU takes several of one size at once."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeVar

import cv2
import numpy as np
import torch
from mmengine.dataset import Compose

from mmseg_cct.datasets.files.image_format import UnsuitableImage
from mmseg_cct.engine.prediction import fused_model, predict_class_ids
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import config_errors_as_one_line
from mmseg_cct.utils.shares import ahead

from .inference import without_annotations

K = TypeVar('K')
_PIXELS_AT_ONCE = 2**21  # in a batch on a GPU
_RESIZABLE = 'expected sides that the test pipeline can resize'


class Segmented(NamedTuple):
    """An image and its classes, or why it could not be read."""

    key: Any  # by which the caller knows the image
    image: Any = None  # as it was read, `(H, W, C)`
    labels: Any = None  # class ids, `(H, W)` uint8
    error: Exception | None = None  # what reading it raised; then there is neither of these two


def segment(model: Any, keys: Iterable[K], read: Callable[[K], np.ndarray]) -> Iterator[Segmented]:
    """Reads images `(H, W, C)` by their keys and segments them, in order.

    Args:
        model: One of `load_model`, or of MMSegmentation's `init_model`.
        keys: By what the caller knows the images, such as their paths.
        read: Reads the image of a key, BGR if it has three channels.

    Yields:
        Each image with its class ids, or with the error of reading it.

    Raises:
        UserError: If the model or its pipeline fails at the first image: a mistake of the config.

    Examples:
        >>> from mmseg.apis import init_model
        >>> from mmseg_cct.config.load import load_config
        >>> model = init_model(load_config('cct_shapes', {}), device='cpu')  # random weights
        >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
        >>> [segmented] = segment(model, ['an image'], lambda key: image)
        >>> segmented.labels.shape
        (48, 64)
    """
    stream, is_first = _segment(model, keys, read), True
    while True:
        guard = config_errors_as_one_line(model.cfg, 'fails at the first image')
        with guard if is_first else nullcontext():
            segmented = next(stream, None)
        if segmented is None:
            return
        is_first = is_first and segmented.error is not None
        yield segmented


def _segment(model: Any, keys: Iterable[K], read: Callable[[K], np.ndarray]) -> Iterator[Segmented]:
    first, *steps = without_annotations(model.cfg.test_pipeline)
    pipeline = Compose([{**first, 'type': 'LoadImageFromNDArray'}, *steps])

    def load(key: K) -> tuple[Segmented, dict[str, Any]]:
        try:
            image = read(key)
        except Exception as error:  # Pillow and OpenCV raise nearly anything on a corrupt file
            return Segmented(key, error=error), {}
        try:
            data = pipeline(dict(img=image))
        except cv2.error:  # as where keeping the ratio leaves no row of a very long image
            size = f'{image.shape[1]}×{image.shape[0]} pixels'
            return Segmented(key, error=UnsuitableImage(f'{size}; {_RESIZABLE}')), {}
        if 'inputs' not in (data or ()):
            raise UserError('test_pipeline', 'gives no inputs', 'PackSegInputs at its end')
        return Segmented(key, image), data

    fused = None
    for batch in _batches(ahead(load, keys), next(model.parameters()).is_cuda):
        if batch[0][0].error is not None:
            yield batch[0][0]
            continue
        data = {name: [inputs[name] for _, inputs in batch] for name in batch[0][1]}
        with torch.no_grad():
            fused = fused or fused_model(model, data)
            ids = predict_class_ids(fused, data)
        for (loaded, _), labels in zip(batch, ids):
            yield loaded._replace(labels=labels.to(torch.uint8).cpu().numpy())


def _batches(
    loaded: Iterable[tuple[Segmented, dict[str, Any]]], grouped: bool
) -> Iterator[list[tuple[Segmented, dict[str, Any]]]]:
    """Groups neighbours whose inputs are of one size; an unreadable image stays alone."""

    def place(numbered: tuple[int, tuple[Segmented, dict[str, Any]]]) -> Any:
        number, (_, data) = numbered
        return tuple(data['inputs'].shape) if data and grouped else number

    for shape, group in groupby(enumerate(loaded), place):
        pixels = shape[1] * shape[2] if isinstance(shape, tuple) else _PIXELS_AT_ONCE
        same = (each for _, each in group)
        while batch := list(islice(same, max(1, _PIXELS_AT_ONCE // pixels))):
            yield batch
