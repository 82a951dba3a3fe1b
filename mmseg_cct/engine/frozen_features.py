"""Features of images by the encoder that will be trained, frozen as it was pretrained."""

import copy
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

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
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import cache_folder, write_atomic
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.output_folder import file_stamp
from mmseg_cct.utils.processes import ahead
from mmseg_cct.utils.text import error_line

from .closed_form import NUM_FEATURES
from .probe import whitening
from .weights import require_pretrained_weights

# Pixels, the longest side that images are resized to. At `COARSE` one takes 0.05 s of a core; what
# is small or thin shows at `FINE` alone, and costs some five times that.
COARSE, FINE = (320,), (640, 320)
# Images that the main directions are found from, and whose features are kept, a fifth of a MB each.
_SAMPLE, _MOST_KEPT = 48, 2000
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


def read_ahead(paths: Iterable[str]) -> Iterator[tuple[str, np.ndarray | UserError]]:
    """Yields each path with its picture, or why it cannot be read."""

    def read(path: str) -> tuple[str, np.ndarray | UserError]:
        try:
            return path, read_picture(path)
        except UserError as error:
            return path, error

    return ahead(read, paths)


def encode_all(
    encoder: Encoder, paths: Sequence[str], description: str
) -> Iterator[np.ndarray | UserError]:
    """Yields the features of each image, or why it cannot be read, with a bar on a terminal."""

    pictures = tqdm(read_ahead(paths), description, len(paths), disable=None, unit='image')
    for _, picture in pictures:
        yield picture if isinstance(picture, UserError) else encoder(picture)


def points_of(encoder: Encoder, paths: Sequence[str]) -> Iterator[np.ndarray]:
    """Yields the features `(P, D)` of each image that can be read."""
    for features in encode_all(encoder, paths, 'first look'):
        if not isinstance(features, UserError):
            yield features.reshape(-1, features.shape[-1])


def load_encoder(
    model: Mapping[str, Any], device: str | None = None, sizes: Sequence[int] = COARSE
) -> Encoder:
    """Builds the backbone of a model's config with its pretrained weights, fetched if need be.

    An image is encoded at each of the `sizes`, and its features are joined on the first one's grid.

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

    def resized(picture: np.ndarray, longest: int) -> Tensor:
        scale = longest / max(picture.shape[:2])
        height, width = (max(round(side * scale / _CELL), 1) * _CELL for side in picture.shape[:2])
        resampling = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        pixels = cv2.resize(picture, (width, height), interpolation=resampling)
        return torch.from_numpy(pixels).to(target).permute(2, 0, 1)

    @torch.no_grad()
    def encode(picture: np.ndarray) -> np.ndarray:
        images = [resized(picture, longest) for longest in sizes]
        grid = [side // _CELL for side in images[0].shape[1:]]
        maps: list[Tensor] = []
        for image in images:
            output = backbone((image[None] - mean) / std)
            maps += [output] if isinstance(output, Tensor) else output
        resampled = [F.interpolate(x, grid, mode='bilinear', align_corners=False) for x in maps]
        features: np.ndarray = torch.cat(resampled, 1)[0].permute(1, 2, 0).cpu().numpy()
        return features

    return encode


class WhitenedFeatures:
    """Features of images in the main directions of a pool of images, `(h, w, K)` of each.

    They are kept in the user's cache folder, so that a later call only looks at new images.

    Args:
        encoder: Of `load_encoder`.
        model: The config that the encoder was loaded from.
        pool: Images like those that are asked for, in any order that is the same in a later call.
        source: The folder of the pool, by which later calls find what is kept.
    """

    def __init__(
        self, encoder: Encoder, model: Mapping[str, Any], pool: Sequence[str], source: str
    ) -> None:
        self._encoder = encoder
        checkpoint = (model['backbone'].get('init_cfg') or {}).get('checkpoint')
        weights = file_stamp(checkpoint) if checkpoint else None
        key = f'{Path(source).resolve()} {model["backbone"]} {weights}'
        # of the encoder and the folder of the pool
        self.digest = hashlib.sha256(key.encode(errors='replace')).hexdigest()[:16]
        self._folder = cache_folder() / 'whitened' / self.digest
        self._room = _MOST_KEPT - sum(1 for _ in self._folder.glob('*.npy'))
        file = self._folder / 'whitening.npz'
        try:
            kept = dict(np.load(file))
            self._mean, self._matrix = kept['mean'], kept['matrix']
        except (OSError, ValueError, KeyError, BadZipFile):  # none, or a damaged one
            paths = evenly(pool, _SAMPLE)
            encoded = zip(paths, encode_all(encoder, paths, 'first look'))
            sample = {path: f for path, f in encoded if not isinstance(f, UserError)}
            if not sample:
                raise UserError(source, 'no image that can be read') from None
            points = [f.reshape(-1, f.shape[-1])[::2] for f in sample.values()]
            self._mean, self._matrix = whitening(np.concatenate(points), max(NUM_FEATURES))
            self._keep(file, np.savez, mean=self._mean, matrix=self._matrix)
            for path, features in sample.items():  # they need not be looked at again
                self._whiten(path, features)

    def __call__(self, path: str, picture: np.ndarray) -> np.ndarray:
        """Looks at the picture of an image file `(H, W, 3)`, RGB, unless its features are kept."""
        kept = self._kept(path)
        return self._whiten(path, self._encoder(picture)) if kept is None else kept

    def of_files(self, paths: Sequence[str]) -> Iterator[np.ndarray | UserError]:
        """Yields the features of each image file, or why it cannot be read.

        Files whose features are kept are not decoded.
        """

        def look(path: str) -> tuple[bool, np.ndarray | UserError]:
            if (kept := self._kept(path)) is not None:
                return True, kept
            try:
                return False, read_picture(path)
            except UserError as error:
                return True, error

        for path, (is_done, content) in zip(paths, ahead(look, paths)):
            if is_done or isinstance(content, UserError):
                yield content
            else:
                yield self._whiten(path, self._encoder(content))

    def _kept(self, path: str) -> np.ndarray | None:
        try:
            features: np.ndarray = np.load(self._file(path))
            return features
        except (OSError, ValueError, EOFError):
            return None

    def _whiten(self, path: str, features: np.ndarray) -> np.ndarray:
        whitened: np.ndarray = ((features - self._mean) @ self._matrix).astype(np.float16)
        if self._room > 0:
            self._room -= 1
            self._keep(self._file(path), np.save, whitened)
        return whitened

    def _file(self, path: str) -> Path:
        stamp = f'{Path(path).resolve()} {file_stamp(path)}'
        name = hashlib.sha256(stamp.encode(errors='replace')).hexdigest()[:32]
        return self._folder / f'{name}.npy'

    def _keep(self, file: Path, save: Callable[..., None], *arrays: Any, **named: Any) -> None:
        save(content := io.BytesIO(), *arrays, **named)
        with suppress(OSError):  # a home that cannot be written
            write_atomic(file, content.getvalue())


def evenly(paths: Sequence[str], number: int) -> list[str]:
    """Takes at most a number of paths, evenly spaced."""
    positions = np.linspace(0, len(paths) - 1, min(number, len(paths))).astype(int)
    return [paths[position] for position in positions]
