"""Pseudo labels of all images: this process computes the maps, the workers run the CRF.

The output folder gets ``labels/NAME.png`` and, with a CRF, ``before_crf/NAME.png``: palette PNGs of
label ids, 255 where ignored.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from mmseg_cct.datasets.files.images import explain_unreadable, read_image, write_png
from mmseg_cct.utils.processes import SharedImages, end_with_parent, image_threads

from .cam import class_activation_maps
from .labels_from_maps import DenseCRF, Thresholds, labels_from_maps, refined_labels
from .settings import PseudoLabelSettings, WeakImage

RECORD = 'pseudo_labels.json'
LABELS, BEFORE_CRF = 'labels', 'before_crf'
QUEUED_PER_WORKER = 3  # images in the queue, so no worker waits
WAITING_IMAGES = 64  # maximum number of images in incomplete batches

Batch = Sequence[tuple[WeakImage, np.ndarray]]


@dataclass(frozen=True)
class LabelWriter:
    """Labels images and writes their files; it is sent to a worker with each image."""

    background: int | None  # its label id
    thresholds: Thresholds
    crf: DenseCRF | None
    palette: np.ndarray  # (256, 3) uint8, RGB, of the PNGs
    out: str  # output folder

    def write(
        self, name: str, image: np.ndarray, maps: np.ndarray, label_ids: Sequence[int]
    ) -> None:
        """Labels the image `(H, W, 3)` uint8, RGB, by its maps `(C_i, H, W)` of `label_ids`."""
        labels = labels_from_maps(maps, label_ids, self.background, self.thresholds)
        if self.crf is not None:
            self._write(BEFORE_CRF, name, labels)
            split = self.background, self.thresholds
            labels = refined_labels(image, maps, label_ids, *split, self.crf)
        self._write(LABELS, name, labels)  # last, since it marks a finished image

    def _write(self, folder: str, name: str, labels: np.ndarray) -> None:
        write_png(Path(self.out, folder, f'{name}.png'), Image.fromarray(labels), self.palette)


def write_pseudo_labels(
    model: Any,
    settings: PseudoLabelSettings,
    share: SharedImages[WeakImage],
    writer: LabelWriter,
    workers: int,
    batch_size: int,
) -> None:
    """Labels a share of images with a progress bar; the last two as in `make_pseudo_labels`."""
    pool: Executor = image_threads()
    if workers:  # `fork` is unsafe with threads and a CUDA context
        context = multiprocessing.get_context('spawn')
        pool = ProcessPoolExecutor(workers, context, _prepare_worker)
    pending: deque[Future] = deque()

    def collect(limit: int) -> None:
        while len(pending) > limit:
            pending.popleft().result()
            share.written()

    try:
        with share.bar:
            for batch in batches(share, settings, batch_size):
                for (image, pixels), maps in zip(batch, maps_of(model, settings, batch)):
                    ids = [settings.label_ids[index] for index in image.class_ids]
                    rgb = pixels[..., ::-1]
                    # The CRF takes far longer than the maps; the device goes on meanwhile.
                    pending.append(pool.submit(writer.write, image.name, rgb, maps, ids))
                    collect(QUEUED_PER_WORKER * workers)
            collect(0)
    finally:
        if workers:
            pool.shutdown(cancel_futures=True)


def batches(
    share: SharedImages[WeakImage], settings: PseudoLabelSettings, batch_size: int
) -> Iterator[Batch]:
    """Reads images, `(H, W, 3)` uint8, BGR, and groups them by size.

    A fixed input size of the classifier makes one group of all. The share counts unreadable images.
    """
    waiting: dict[tuple[int, ...], list[tuple[WeakImage, np.ndarray]]] = {}
    for image in share.own:
        try:
            pixels = read_image(image.path)
        except Exception as error:  # Pillow and OpenCV raise nearly anything on a corrupt file
            share.failed(explain_unreadable(image.path, 'image', error))
            continue
        group = settings.input_size or pixels.shape
        waiting.setdefault(group, []).append((image, pixels))
        if len(waiting[group]) >= batch_size:
            yield waiting.pop(group)
        # Folders of many sizes would fill the memory with groups that never get full.
        elif sum(map(len, waiting.values())) >= WAITING_IMAGES:
            yield waiting.pop(max(waiting, key=lambda size: len(waiting[size])))
    yield from waiting.values()


def maps_of(model: Any, settings: PseudoLabelSettings, batch: Batch) -> list[np.ndarray]:
    """Computes the maps `(C_i, H, W)` in [0, 1] of images `(H, W, 3)` uint8, BGR."""
    inputs = [pixels for _, pixels in batch]
    if settings.input_size is not None:
        inputs = [cv2.resize(pixels, settings.input_size) for pixels in inputs]
    stacked = torch.from_numpy(np.stack(inputs).transpose(0, 3, 1, 2).copy())
    images = model.data_preprocessor(dict(inputs=stacked))['inputs']
    class_ids, sizes = zip(*((image.class_ids, pixels.shape[:2]) for image, pixels in batch))
    maps = class_activation_maps(model, images, class_ids, sizes, settings.scales)
    return [of_image.cpu().numpy() for of_image in maps]


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends the workers
    end_with_parent()
