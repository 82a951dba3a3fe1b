"""Writes the pseudo labels of a set of images with several processes.

With the classifier on a GPU this process computes the maps, and the workers run the CRF meanwhile.
On a CPU the maps cost as much as the CRF, so every worker does both for the images it gets.

Written are, below the output folder, ``labels/NAME.png`` and, where a CRF refines them,
``before_crf/NAME.png``: palette PNGs of label ids, 255 where a pixel has none.
"""

import multiprocessing
import os
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
from tqdm import tqdm

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import read_image, write_png
from mmseg_cct.utils.image_record import ImageCounts

from .cam import class_activation_maps
from .crf import DenseCRF, refined_labels
from .settings import PseudoLabelSettings, WeakImage
from .thresholds import Thresholds, labels_from_maps

RECORD = 'pseudo_labels.json'
LABELS, BEFORE_CRF = 'labels', 'before_crf'
QUEUED_PER_WORKER = 3  # pieces of work that wait: enough to never let a worker wait
WAITING_IMAGES = 64  # images that wait for others of their size
THREAD_VARIABLES = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


@dataclass(frozen=True)
class LabelTask:
    """All that a worker needs to label an image.

    Attributes:
        name: Name of the image.
        image: `(H, W, 3)` uint8, RGB.
        maps: `(C_i, H, W)` in [0, 1].
        label_ids: C_i label ids.
        background: Label id of the background, or None.
        thresholds: θ_bg and θ_fg.
        crf: The CRF, or None.
        colours: `(256, 3)` uint8, RGB.
        out: The output folder.
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
        """Labels the image and writes its files; the one that stands for both is the last.

        Returns:
            How many images are labelled: 1.
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
    images: Sequence[WeakImage],
    out: str,
    *,
    with_crf: bool = True,
    workers: int = 1,
    batch_size: int = 8,
    done: int = 0,
) -> ImageCounts:
    """Labels images and shows the progress.

    Args:
        model: The classifier.
        settings: How to label.
        images: The images.
        out: The output folder.
        with_crf: Whether a CRF refines the labels.
        workers: Number of processes beside this one; 0 does all the work in this one.
        batch_size: Images that go through the classifier together, where they are of one size.
        done: Images that an earlier run finished, for the progress bar.

    Returns:
        Counts of written, skipped and failed images.

    Raises:
        UserError: If a worker process was killed.
    """
    counts = ImageCounts(skipped=done)
    label = partial(label_tasks, model, settings, out=out, with_crf=with_crf)
    in_workers = workers > 0 and not next(model.parameters()).is_cuda
    pool = _start_workers(workers, label if in_workers else None)
    pending: set[Future] = set()
    try:
        with tqdm(initial=done, total=done + len(images), unit='image', smoothing=0.1) as bar:

            def collect(limit: int) -> None:
                nonlocal pending
                while len(pending) > limit:
                    finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in finished:
                        counts.written += future.result()
                        bar.update(future.result())

            for batch in batches(images, settings, batch_size, counts):
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
            f'--workers {workers}: a worker process was killed, perhaps for memory; run again with '
            'fewer (finished images are kept)'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
    return counts


def batches(
    images: Sequence[WeakImage],
    settings: PseudoLabelSettings,
    batch_size: int,
    counts: ImageCounts,
) -> Iterator[list[tuple[WeakImage, np.ndarray]]]:
    """Reads images and groups them by size.

    Args:
        images: The images.
        settings: Names the size of the classifier's input, if it is always the same.
        batch_size: Of a group, at most.
        counts: Takes a line for each image that cannot be read.

    Yields:
        Images with their pixels, `(H, W, 3)` uint8, BGR.
    """
    waiting: dict[tuple[int, ...], list[tuple[WeakImage, np.ndarray]]] = {}
    for image in images:
        try:
            pixels = read_image(image.path)
        except Exception as error:  # Pillow and OpenCV raise nearly anything on a corrupt file
            counts.add_unreadable(image.path, error)
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
    """Computes the maps of a batch.

    Args:
        model: The classifier.
        settings: How to label.
        batch: Images with their pixels, BGR.
        out: The output folder.
        with_crf: Whether a CRF refines the labels.

    Yields:
        What is left to do for each image.
    """
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


def unfinished(images: Sequence[WeakImage], out: str) -> list[WeakImage]:
    """Finds the images that an earlier run has not labelled.

    Args:
        images: The images.
        out: The output folder.

    Returns:
        Those without labels.
    """
    return [i for i in images if not Path(out, LABELS, f'{i.name}.png').exists()]


Label = Callable[[Sequence[tuple[WeakImage, np.ndarray]]], Iterator[LabelTask]]
_label: Label | None = None  # of a worker that computes maps; sent once, for it holds the model


def _start_workers(workers: int, label: Label | None) -> Executor:
    if workers == 0:
        return _ThisProcess()
    # A worker's BLAS reads them when it starts; this process has read them long ago.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, '1'))
    # Not fork: this process has threads, and may have a CUDA context.
    context = multiprocessing.get_context('spawn')
    return ProcessPoolExecutor(workers, context, _prepare_worker, (label,))


def _prepare_worker(label: Label | None) -> None:
    global _label
    _label = label
    torch.set_num_threads(1)


def _label_batch(batch: Sequence[tuple[WeakImage, np.ndarray]]) -> int:
    assert _label is not None  # of every worker that gets a batch
    return sum(task.write() for task in _label(batch))


class _ThisProcess(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future
