"""Features of images by the encoder that will be trained, frozen as it was pretrained."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from torch import Tensor
from tqdm import tqdm

from mmseg_cct.datasets.files.image_format import image_format
from mmseg_cct.datasets.files.images import (
    as_rgb,
    decode_channels,
    decode_image,
    named_if_unreadable,
)
from mmseg_cct.engine.weights import require_pretrained_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.processes import ahead
from mmseg_cct.utils.text import error_line

_LONGEST = 320  # pixels, the side that images are resized to, so that one takes 0.05 s of a core
_CELL = 16  # pixels of a cell of the grid of features, which the sides are multiples of
_ENDS = (0.1, 99.9)  # percentiles that become 0 and 255 where values have other than 8 bits

# Maps a picture `(H, W, 3)`, uint8 RGB, to features `(h, w, D)`, float32.
Encoder = Callable[[np.ndarray], np.ndarray]


def read_picture(path: str) -> np.ndarray:
    """Reads any image that a training can read as `(H, W, 3)` uint8, RGB, to be looked at.

    Of more than three channels the first three are taken, of two the first. Values of other than
    8 bits are stretched, image by image.

    Raises:
        UserError: If the file is unreadable.
    """
    with named_if_unreadable(path, 'image'):
        data = Path(path).read_bytes()
        if image_format(data).is_plain:
            return as_rgb(decode_image(data))
        pixels = np.nan_to_num(decode_channels(data))
        if pixels.dtype != np.uint8:
            low, high = np.percentile(pixels, _ENDS)
            pixels = (pixels - low) * (255 / max(high - low, 1e-9))
        is_colored = pixels.shape[2] >= 3
        return as_rgb(pixels[..., [2, 1, 0]] if is_colored else pixels[..., :1])


def encode_all(
    encoder: Encoder, paths: Sequence[str], description: str
) -> Iterator[np.ndarray | UserError]:
    """Yields the features of each image, or why it cannot be read, with a bar on a terminal."""

    def read(path: str) -> np.ndarray | UserError:
        try:
            return read_picture(path)
        except UserError as error:
            return error

    pictures = tqdm(ahead(read, paths), description, len(paths), disable=None, unit='image')
    for picture in pictures:
        yield picture if isinstance(picture, UserError) else encoder(picture)


def points_of(encoder: Encoder, paths: Sequence[str]) -> Iterator[np.ndarray]:
    """Yields the features `(P, D)` of each image that can be read."""
    for features in encode_all(encoder, paths, 'first look'):
        if not isinstance(features, UserError):
            yield features.reshape(-1, features.shape[-1])


def load_encoder(model: Mapping[str, Any], device: str | None = None) -> Encoder:
    """Builds the backbone of a model's config with its pretrained weights, fetched if need be.

    Raises:
        UserError: If the weights cannot be fetched or do not fit.
    """
    settings = copy.deepcopy(model['backbone'])
    try:
        with only_warnings(), DefaultScope.overwrite_default_scope('mmseg'):
            require_pretrained_weights(settings, 'model.backbone')
            backbone = MODELS.build(settings)
            backbone.init_weights()
    except UserError:
        raise
    except Exception as error:  # hubs raise nearly anything without a network
        raise UserError('weights of the backbone', error_line(error, 160)) from error
    target = torch.device(device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    backbone.to(target).eval()
    mean, std = (
        torch.tensor(model['data_preprocessor'][key], device=target).view(3, 1, 1)
        for key in ('mean', 'std')
    )

    @torch.no_grad()
    def encode(picture: np.ndarray) -> np.ndarray:
        scale = _LONGEST / max(picture.shape[:2])
        height, width = (max(round(side * scale / _CELL), 1) * _CELL for side in picture.shape[:2])
        resampling = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        resized = cv2.resize(picture, (width, height), interpolation=resampling)
        image = torch.from_numpy(resized).to(target).permute(2, 0, 1)
        maps = backbone((image[None] - mean) / std)
        maps = [maps] if isinstance(maps, Tensor) else maps
        grid = height // _CELL, width // _CELL
        resampled = [F.interpolate(x, grid, mode='bilinear', align_corners=False) for x in maps]
        features: np.ndarray = torch.cat(resampled, 1)[0].permute(1, 2, 0).cpu().numpy()
        return features

    return encode
