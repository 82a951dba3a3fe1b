"""Prediction for videos, frame by frame."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import mmcv
import numpy as np

from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.visualization.label_maps import blend, legend_picture
from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.files import part_of
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.shares import ImageCounts, ahead, progress_bar
from mmseg_cct.utils.text import is_unicode

from .prediction import MASKS, OVERLAYS, RECORD, config_and_origin, model_and_legend, write_mask
from .segment import Segmented, segment

SUFFIXES = ('.mp4', '.avi', '.mov', '.mkv', '.webm', '.m4v', '.mpg', '.mpeg', '.wmv')
_SUFFIX, _CODEC = '.mp4', 'mp4v'
_FRAMES_PER_SECOND = 25.0  # if the video does not tell


def is_video(path: str) -> bool:
    """Whether a path names a video."""
    return path.lower().endswith(SUFFIXES) and not os.path.isdir(path)


def predict_video(
    config_file: str,
    checkpoint: str,
    video: str,
    out: str,
    *,
    masks: bool = False,
    options: dict[str, Any] | None = None,
    device: str | None = None,
    opacity: float = 0.5,
    domain: str | None = None,
    palette: str | None = None,
) -> ImageCounts:
    """Segments a video and writes `overlays/NAME.mp4`, with the classes below the picture.

    Only a few frames are in memory at a time. A finished video is skipped unless its input has
    changed since.

    Args:
        config_file: The config of the model.
        checkpoint: The weights.
        video: A file that OpenCV reads.
        out: Folder for the predictions.
        masks: Also write `masks/NAME/000000.png` and so on, class ids of each frame.
        options: Settings of the config to override, by dotted key.
        device: Where to compute; by default the GPU, if any.
        opacity: Weight of the class colours, in [0, 1].
        domain: Which domain the video is from, if the model has several.
        palette: A data set of MMSeg or a JSON file with the colours of the classes.

    Returns:
        Counts of frames; a video that ends too early is a failure.

    Raises:
        UserError: The video cannot be read, or what `predict_images` rejects.
    """
    config, origin = config_and_origin(
        config_file, checkpoint, options, opacity=opacity, domain=domain, palette=palette
    )
    name = Path(video).name.removesuffix(_SUFFIX)  # a.avi becomes a.avi.mp4 beside a.mp4
    target = Path(out, OVERLAYS, f'{name}{_SUFFIX}')
    folder = OutputFolder(out, RECORD, {video, *data_folders(config)}, origin)
    with _opened(video) as frames, folder:
        made_of = {target.name: [*(file_stamp(video) or ()), masks]}
        expected = max(0, frames.frame_cnt)
        if not folder.remaining(made_of, OVERLAYS, suffix=''):
            return ImageCounts(skipped=expected)
        model = model_and_legend(config, checkpoint, out, device, domain, palette)
        meta = model.dataset_meta
        counts = ImageCounts()

        def draw(frame: Segmented) -> np.ndarray:
            number, _ = frame.key
            if masks:
                write_mask(Path(out, MASKS, name, f'{number:06d}.png'), frame.labels, model)
            return blend(frame.image, frame.labels, meta['classes'], meta['palette'], opacity)

        is_known = math.isfinite(frames.fps) and frames.fps > 0
        rate = frames.fps if is_known else _FRAMES_PER_SECOND
        with progress_bar(expected, 0) as bar, _writer(target, rate) as write:
            legend = None
            for picture in ahead(draw, segment(model, enumerate(frames), lambda item: item[1])):
                if legend is None:
                    legend = legend_picture(meta['classes'], meta['palette'], picture.shape[1])
                write(np.vstack([picture, legend])[..., ::-1])
                counts.written += 1
                bar.update()
    if not counts.written:
        raise UserError(_unreadable(video))
    if counts.written < 0.98 * expected - 2:  # some containers only estimate the number
        counts.failed.append(f'{video}: ends after {counts.written} of {expected} frames')
    return counts


def _unreadable(video: str) -> Problem:
    return Problem(video, 'cannot be read', 'a video that OpenCV decodes')


@contextmanager
def _opened(video: str) -> Iterator[mmcv.VideoReader]:
    if not os.path.isfile(video):
        raise UserError(video, 'no such file', 'a video')
    _require_unicode(video)
    os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')  # FFmpeg says the same in several lines
    # FFmpeg takes a name such as `http:a.mp4` for an address unless it begins with a folder.
    with mmcv.VideoReader(os.path.abspath(video)) as frames:
        if not frames.opened:
            raise UserError(_unreadable(video))
        yield frames


def _require_unicode(path: str) -> None:
    if not is_unicode(path):  # OpenCV would end the process
        raise UserError(ascii(path), 'not UTF-8', 'another name for OpenCV')


@contextmanager
def _writer(target: Path, rate: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Writes frames `(H, W, 3)` uint8, BGR, of one size; the file appears once it is complete."""
    _require_unicode(str(target))
    writer = cv2.VideoWriter()

    def write(frame: np.ndarray) -> None:
        height, width = frame.shape[:2]
        frame = cv2.copyMakeBorder(frame, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        if not writer.isOpened():
            code = cv2.VideoWriter.fourcc(*_CODEC)
            if not writer.open(str(part), code, rate, frame.shape[1::-1]):
                found = f'OpenCV cannot write {_CODEC}'
                raise UserError(str(target), found, 'opencv-python with FFmpeg')
        writer.write(frame)

    with part_of(target, _SUFFIX) as part:
        try:
            yield write
        finally:
            writer.release()
