"""Parallel generation of pseudo labels.

With the classifier on a GPU, this process computes the maps while the workers run the CRF. On a CPU
the maps cost as much as the CRF, so every worker does both for its images.

The output folder gets ``labels/NAME.png`` and, with a CRF, ``before_crf/NAME.png``: palette PNGs of
label ids, 255 where ignored.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_counts import SharedImages
from mmseg_cct.utils.image_files import read_image, write_png
from mmseg_cct.utils.processes import end_with_parent

from .cam import class_activation_maps
from .crf import DenseCRF, refined_labels
from .settings import PseudoLabelSettings, WeakImage
from .thresholds import Thresholds, labels_from_maps

RECORD = 'pseudo_labels.json'
LABELS, BEFORE_CRF = 'labels', 'before_crf'
QUEUED_PER_WORKER = 3  # tasks in the queue, so no worker waits
WAITING_IMAGES = 64  # maximum number of images in incomplete batches
THREAD_VARIABLES = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


@dataclass(frozen=True)
class LabelTask:
    """Input of a worker for one image.

    Attributes:
        name: Name of the image.
        image: `(H, W, 3)` uint8, RGB.
        maps: `(C_i, H, W)` in [0, 1].
        label_ids: C_i label ids of the maps.
        background: Label id of the background, or None.
        thresholds: θ_bg and θ_fg.
        crf: Dense CRF, or None.
        colours: `(256, 3)` uint8, RGB, palette of the PNGs.
        out: Output folder.
    """

    name: str
    image: np.ndarray
    maps: np.ndarray
    label_ids: tuple[int, ...]
    background: int | None
    thresholds: Thresholds
    crf: DenseCRF | None
    colours: np.ndarray
    out: str

    def write(self) -> int:
        """Labels the image and writes its files, `labels` last, since it marks a finished image.

        Returns 1, the number of labelled images.
        """
        rest = (self.maps, self.label_ids, self.background, self.thresholds)
        labels = labels_from_maps(*rest)
        if self.crf is not None:
            self._write(BEFORE_CRF, labels)
            labels = refined_labels(self.image, *rest, self.crf)
        self._write(LABELS, labels)
        return 1

    def _write(self, folder: str, labels: np.ndarray) -> None:
        path = Path(self.out, folder, f'{self.name}.png')
        write_png(path, Image.fromarray(labels), self.colours)


def write_pseudo_labels(
    model: Any,
    settings: PseudoLabelSettings,
    share: SharedImages[WeakImage],
    out: str,
    *,
    with_crf: bool = True,
    workers: int = 1,
    batch_size: int = 8,
) -> None:
    """Labels a share of images with a progress bar; a killed worker process is a `UserError`.

    `batch_size` is the maximum number of images of one size in a batch of the classifier. With 0
    `workers` this process does the work.
    """
    label = partial(label_tasks, model, settings, out=out, with_crf=with_crf)
    in_workers = workers > 0 and not next(model.parameters()).is_cuda
    pool = _start_workers(workers, label if in_workers else None)
    pending: set[Future] = set()
    try:
        with share:

            def collect(limit: int) -> None:
                nonlocal pending
                while len(pending) > limit:
                    finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in finished:
                        share.written(future.result())

            for batch in batches(share, settings, batch_size):
                work: Iterable[Callable[[], int]] = (
                    [partial(_label_batch, batch)]
                    if in_workers
                    else (task.write for task in label(batch))
                )
                for piece in work:
                    pending.add(pool.submit(piece))
                    collect(QUEUED_PER_WORKER * max(workers, 1))
            collect(0)
    except BrokenProcessPool:
        raise UserError(
            f'--workers {workers}',
            'a worker process was killed, perhaps for memory; run again with fewer (finished '
            'images are kept)',
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def batches(
    share: SharedImages[WeakImage], settings: PseudoLabelSettings, batch_size: int
) -> Iterator[list[tuple[WeakImage, np.ndarray]]]:
    """Reads images, `(H, W, 3)` uint8, BGR, and groups them by size.

    A fixed input size of the classifier makes one group of all. The share counts unreadable images.
    """
    waiting: dict[tuple[int, ...], list[tuple[WeakImage, np.ndarray]]] = {}
    for image in share.own:
        try:
            pixels = read_image(image.path)
        except Exception as error:  # Pillow and OpenCV raise nearly anything on a corrupt file
            share.unreadable(image.path, error)
            continue
        group = settings.input_size or pixels.shape
        waiting.setdefault(group, []).append((image, pixels))
        if len(waiting[group]) >= batch_size:
            yield waiting.pop(group)
        elif sum(map(len, waiting.values())) >= WAITING_IMAGES:
            yield waiting.pop(max(waiting, key=lambda size: len(waiting[size])))
    yield from waiting.values()


def label_tasks(
    model: Any,
    settings: PseudoLabelSettings,
    batch: Sequence[tuple[WeakImage, np.ndarray]],
    out: str,
    with_crf: bool,
) -> Iterator[LabelTask]:
    """Computes the maps of a batch of images `(H, W, 3)` uint8, BGR; yields a task for each."""
    inputs = [
        pixels if settings.input_size is None else cv2.resize(pixels, settings.input_size)
        for _, pixels in batch
    ]
    stacked = torch.from_numpy(np.stack(inputs).transpose(0, 3, 1, 2).copy())
    maps = class_activation_maps(
        model,
        model.data_preprocessor(dict(inputs=stacked))['inputs'],
        [image.class_ids for image, _ in batch],
        [pixels.shape[:2] for _, pixels in batch],
        settings.scales,
    )
    for (image, pixels), image_maps in zip(batch, maps):
        yield LabelTask(
            name=image.name,
            image=pixels[..., ::-1],
            maps=image_maps.cpu().numpy(),
            label_ids=tuple(settings.label_ids[index] for index in image.class_ids),
            background=settings.background,
            thresholds=settings.thresholds,
            crf=settings.crf if with_crf else None,
            colours=settings.colours,
            out=out,
        )


Label = Callable[[Sequence[tuple[WeakImage, np.ndarray]]], Iterator[LabelTask]]
_label: Label | None = None  # set in workers that compute maps, once, since it holds the model


def _start_workers(workers: int, label: Label | None) -> Executor:
    if workers == 0:
        return _ThisProcess()
    # BLAS reads them at the start of a process, so they affect the workers only.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, '1'))
    # `fork` is unsafe with threads and a CUDA context.
    context = multiprocessing.get_context('spawn')
    return ProcessPoolExecutor(workers, context, _prepare_worker, (label,))


def _prepare_worker(label: Label | None) -> None:
    global _label
    _label = label
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends the workers
    end_with_parent()
    torch.set_num_threads(1)


def _label_batch(batch: Sequence[tuple[WeakImage, np.ndarray]]) -> int:
    assert _label is not None  # `_prepare_worker` sets it
    return sum(task.write() for task in _label(batch))


class _ThisProcess(Executor):
    """Executor that runs tasks at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future
