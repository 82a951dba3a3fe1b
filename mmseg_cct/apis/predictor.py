"""Segments images; loading runs ahead, and a GPU takes several images of one size at once."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from mmcv.transforms import LoadAnnotations, LoadImageFromFile, TestTimeAug
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from mmseg.registry import TRANSFORMS

from mmseg_cct.datasets import LoadChannels
from mmseg_cct.datasets.files.images import decoder_of
from mmseg_cct.engine.prediction import Prediction, fused_model, predict
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import is_a
from mmseg_cct.utils.processes import ahead
from mmseg_cct.utils.text import one_line

__all__ = ['Predictor']

_PIXELS_AT_ONCE = 2**21  # in a batch on a GPU
# of Python's, CUDA's and torch's own allocators
_NO_MEMORY = re.compile("MemoryError|OutOfMemoryError|can't allocate memory")
_SLIDING = (
    'a window that slides over it: --cfg-options model.test_cfg.mode=slide '
    'model.test_cfg.crop_size=512,512 model.test_cfg.stride=341,341'
)


class Segmented(NamedTuple):
    """An image and its classes, or why it has none."""

    path: Path
    image: Any = None  # as the test pipeline reads it, `(H, W, C)`, BGR if C = 3
    labels: Any = None  # class ids, `(H, W)` uint8
    confidence: Any = None  # `(H, W)` uint8, 255 is certain; if it is asked for
    error: Exception | None = None  # of reading it, or of its size; then there is only a path


class SegmentsImages(Protocol):
    """What segments image files: a trained network, or the closed form of a preview."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Names (`classes`) and colours (`palette`) of the classes."""

    def __call__(self, paths: Iterable[str | os.PathLike]) -> Iterator[Segmented]:
        """Yields each image, in order, with its class ids or the error of reading it."""


class Predictor:
    """A trained network that segments image files.

    Args:
        model: Of `Run.load_model` or MMSegmentation's `init_model`.
        with_confidence: Whether it also gives the probability of the predicted class.

    Examples:
        >>> from mmseg.apis import init_model
        >>> from mmseg_cct.config.load import load_config
        >>> model = init_model(load_config('cct_shapes', {}), device='cpu')  # random weights
        >>> [segmented] = Predictor(model)(['docs/images/demo.png'])
        >>> segmented.image.shape[:2] == segmented.labels.shape
        True
    """

    def __init__(self, model: Any, with_confidence: bool = False) -> None:
        self.model, self._with_confidence = model, with_confidence
        init_default_scope(model.cfg.get('default_scope') or 'mmseg')
        first, *steps = without_annotations(model.cfg.test_pipeline)
        loader = TRANSFORMS.build(dict(first))
        self._decode = decoder_of(loader if isinstance(loader, LoadImageFromFile) else None)
        # what remains to be done with an image that is decoded already
        options = {} if isinstance(loader, LoadChannels) else first
        self._pipeline = Compose([{**options, 'type': 'LoadImageFromNDArray'}, *steps])
        self._fused: Any = None

    @property
    def meta(self) -> Mapping[str, Any]:
        """Names (`classes`) and colours (`palette`) of the classes."""
        return self.model.dataset_meta

    def __call__(self, paths: Iterable[str | os.PathLike]) -> Iterator[Segmented]:
        """Yields each image, in order, with its class ids or the error of reading it."""
        pixels = _PIXELS_AT_ONCE if next(self.model.parameters()).is_cuda else 0
        for batch in batches_of_one_size(ahead(self._load, map(Path, paths)), pixels):
            if batch[0][0].error is not None:
                yield batch[0][0]
                continue
            data = {name: [inputs[name] for _, inputs in batch] for name in batch[0][1]}
            try:
                predictions = self.predict(data)
            except (MemoryError, RuntimeError) as error:
                if not _NO_MEMORY.search(f'{type(error).__name__}: {error}'):
                    raise
                for loaded, _ in batch:
                    height, width = loaded.image.shape[:2]
                    problem = f'{width}×{height} pixels do not fit the memory', _SLIDING
                    yield Segmented(loaded.path, error=UserError(loaded.path, *problem))
                continue
            for (loaded, _), (class_ids, confidence) in zip(batch, predictions):
                maps = class_ids, None if confidence is None else (confidence * 255).round()
                labels, levels = (x if x is None else x.to(torch.uint8).cpu().numpy() for x in maps)
                yield loaded._replace(labels=labels, confidence=levels)

    @torch.no_grad()
    def predict(self, data: dict[str, Any]) -> list[Prediction]:
        """Predicts each pixel of the images in a batch of the test pipeline."""
        self._fused = self._fused or fused_model(self.model, data)
        return predict(self._fused, data, self._with_confidence)

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads an image as the test pipeline does, `(H, W)` or `(H, W, C)`."""
        return self._decode(Path(path).read_bytes())

    def _load(self, path: Path) -> tuple[Segmented, dict[str, Any]]:
        try:
            image = self.read(path)
        except Exception as error:  # decoders raise nearly anything on a corrupt file
            return Segmented(path, error=error), {}
        try:
            data = self._pipeline(dict(img=image))
        except Exception as error:
            size = f'{image.shape[1]}×{image.shape[0]} pixels'
            problem = f'the test pipeline does not run on its {size} ({one_line(error)})'
            return Segmented(path, error=UserError(path, problem)), {}
        data['data_samples'].set_metainfo(dict(img_path=str(path)))  # for errors
        return Segmented(path, image), data


def without_annotations(steps: Sequence[Any]) -> list[Any]:
    """Leaves `LoadAnnotations` out of a pipeline, and out of the views of its `TestTimeAug`."""
    kept = []
    for step in steps:
        if is_a(step, TRANSFORMS, TestTimeAug):
            branches = map(without_annotations, step['transforms'])
            step = dict(step, transforms=[branch for branch in branches if branch])
        if not is_a(step, TRANSFORMS, LoadAnnotations):
            kept.append(step)
    return kept


def batches_of_one_size(
    loaded: Iterable[tuple[Segmented, dict[str, Any]]], pixels: int
) -> Iterator[list[tuple[Segmented, dict[str, Any]]]]:
    """Groups neighbours whose inputs are of one size, up to so many `pixels`, or one image.

    An unreadable image stays alone.
    """
    batch: list[tuple[Segmented, dict[str, Any]]] = []
    size = None
    for image in loaded:
        shape = image[1]['inputs'].shape if image[1] else None
        fits = shape is not None and (len(batch) + 1) * shape[-2] * shape[-1] <= pixels
        if batch and not (fits and shape == size):
            yield batch
            batch = []
        batch.append(image)
        size = shape
    if batch:
        yield batch
