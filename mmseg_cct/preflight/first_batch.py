"""Checks metrics, masks and file names that a first validation or test would fail on."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.hooks import CheckpointHook, EarlyStoppingHook
from mmengine.optim.scheduler.param_scheduler import ReduceOnPlateauParamScheduler
from mmseg.evaluation import IoUMetric

from mmseg_cct.datasets.leaves import image_loader, infos_of, leaf_datasets
from mmseg_cct.errors import Problem
from mmseg_cct.utils.images import image_size

_IOU_METRICS = ('mIoU', 'mDice', 'mFscore')


def metric_problems(metrics: Sequence[Any], key: str) -> Iterator[Problem]:
    """Checks the names in `iou_metrics`, which MMSeg looks at only after the last image."""
    for part in iou_metrics(metrics):
        given = [part.metrics] if isinstance(part.metrics, str) else part.metrics
        if not isinstance(given, (list, tuple)) or any(name not in _IOU_METRICS for name in given):
            yield Problem(f'{key}.iou_metrics={given!r}', '', f'some of {", ".join(_IOU_METRICS)}')


def iou_metrics(metrics: Sequence[Any]) -> list[IoUMetric]:
    """Finds the metrics that measure IoU, including those of each domain."""
    parts = list(metrics)
    for metric in metrics:
        by_domain = getattr(metric, 'metrics', None)
        parts += by_domain.values() if isinstance(by_domain, Mapping) else []
    return [part for part in parts if isinstance(part, IoUMetric)]


def best_problems(
    parts: Sequence[Any], names: Sequence[str], absent: Sequence[str] = ()
) -> Iterator[Problem]:
    """Checks the metrics that pick the best checkpoint, end a training or lower its rates.

    Of all that `names` holds, accuracies and IoU, more is better. `parts` are hooks and schedulers;
    `absent` are the classes that no validation mask shows, which thus have no metric.
    """
    for place, key, rule in {*chain.from_iterable(map(_waited_for, parts))}:
        if key not in names:
            is_absent = key.partition('.')[2] in absent
            found = 'no validation mask shows this class' if is_absent else 'no such metric'
            yield Problem(f'{place}={key!r}', found, ', '.join(names))
        elif rule == 'less':
            yield Problem(f'{place}={key!r}', f'waits for less of it ({rule=})', "rule='greater'")


def _waited_for(part: Any) -> Iterator[tuple[str, str, str]]:
    """Yields place, name and rule of each metric that a hook or a scheduler compares."""
    if isinstance(part, CheckpointHook) and part.save_best:
        for key, rule in zip(part.key_indicators, part.rules):
            if key != 'auto':
                yield 'default_hooks.checkpoint.save_best', key, rule
    elif isinstance(part, EarlyStoppingHook):
        yield 'EarlyStoppingHook.monitor', part.monitor, part.rule
    elif isinstance(part, ReduceOnPlateauParamScheduler):
        yield f'{type(part).__name__}.monitor', part.monitor, part.rule


def batch_problems(loader: Any, key: str) -> Iterator[Problem]:
    """Checks that the images of each batch leave the pipeline in one size, as MMSeg needs them.

    Of each size in the files, one image goes through the pipeline.
    """
    if loader.batch_size in (None, 1):
        return
    images = [(leaf, info) for leaf in leaf_datasets(loader.dataset) for info in infos_of(leaf)]
    shapes: dict[Any, tuple[int, int]] = {}
    for batch in loader.batch_sampler:
        paths: dict[tuple[int, int], str] = {}
        for index in batch:
            leaf, info = images[index % len(images)]  # of a RepeatDataset
            if (path := info.get('img_path')) is None:  # a drawn one
                return
            size = image_size(path, getattr(leaf, 'backend_args', None), False, image_loader(leaf))
            if (id(leaf), size) not in shapes:
                height, width = loader.dataset[index]['inputs'].shape[-2:]
                shapes[id(leaf), size] = width, height
            paths.setdefault(shapes[id(leaf), size], path)
        if len(paths) > 1:
            found = ' and '.join(f'{path} of {w}×{h}' for (w, h), path in [*paths.items()][:2])
            yield Problem(f'{key}.batch_size={loader.batch_size}', f'{found} in one batch', '1')
            return


def truth_problems(samples: Sequence[dict], key: str) -> Iterator[Problem]:
    """Checks that predicted images come with masks of the same size as their predictions."""
    for sample in samples:
        place = f'{key}.pipeline: {sample.get("img_path") or "an image"}'
        truth = sample.get('gt_sem_seg')
        if truth is None:
            yield Problem(place, 'no mask loaded', 'LoadAnnotations in the pipeline')
            continue
        (height, width), (true_height, true_width) = (
            part['data'].shape[-2:] for part in (sample['pred_sem_seg'], truth)
        )
        if (height, width) != (true_height, true_width):
            found = (
                f'a mask of {true_width}×{true_height} pixels and a prediction of {width}×{height}'
            )
            yield Problem(place, found, 'LoadAnnotations after any Resize, and no crop')


def file_name_problems(metrics: Sequence[Any], dataset: Any) -> Iterator[Problem]:
    """Checks that no metric writes the predictions of two images to one file.

    MMSeg names the file after the image, without its folder and extension.
    """
    for metric in metrics:
        if (folder := getattr(metric, 'output_dir', None)) is None:
            continue
        # a metric of several domains gives each a subfolder
        by_domain = isinstance(getattr(metric, 'metrics', None), Mapping)
        for part in dataset.domains.values() if by_domain else [dataset]:
            image_of: dict[str, str] = {}
            for info in infos_of(part):
                if (image := info.get('img_path')) is None:  # a drawn one
                    continue
                other = image_of.setdefault(Path(image).stem, image)
                if other != image:
                    found = f'{other} and {image} would both become {Path(image).stem}.png'
                    expected = 'names that differ, or tools/predict.py, which keeps subfolders'
                    yield Problem(folder, found, expected)
