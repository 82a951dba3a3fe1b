"""Rehearses a validation before a training, which may otherwise end at its first one."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from mmengine.runner import Runner
from mmengine.runner.amp import autocast
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric

from mmseg_cct.datasets.files.images import image_size
from mmseg_cct.datasets.leaves import image_loader, infos_of, leaf_datasets
from mmseg_cct.engine.metrics import ClassIoUMetric
from mmseg_cct.engine.models import eval_sandbox, unwrap_model
from mmseg_cct.errors import Problem, raise_problems
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.text import library_errors_as_one_line

_FITS = 'a pipeline that loads masks after any Resize, and a model and metrics that fit it'


def rehearse_validation(runner: Runner, absent: Sequence[str] = ()) -> None:
    """Runs the first validation batch, or that of each domain, through pipeline, model and metrics.

    The training is not affected: random states and modes are restored, metrics are copies, and
    nothing is written. Every rank runs the same batches and gathers nothing. Metrics other than
    MMSeg's and this package's IoU may write files, so they are left out. `absent` are the classes
    that no validation mask shows.
    """
    loader = runner.val_dataloader
    metrics = list(getattr(getattr(runner.val_loop, 'evaluator', None), 'metrics', ()))
    parts = [(metric, iou_metrics([metric])) for metric in metrics]
    known = [metric for metric, ious in parts if ious and not any(i.format_only for i in ious)]
    names: list[str] = []
    with eval_sandbox(unwrap_model(runner.model), seed=0):
        for key, images in _first_batches(loader.dataset, loader.batch_size or 1):
            fails = 'its first images cannot be validated'
            with library_errors_as_one_line(key, fails, _FITS):
                batch = loader.collate_fn([loader.dataset[index] for index in images])
                with autocast(enabled=getattr(runner.val_loop, 'fp16', False)):
                    outputs = runner.model.val_step(batch)
                samples = [sample.to_dict() for sample in outputs]
                for metric in known:
                    names += _names_of(metric, batch, samples, absent)
                for hook in runner.hooks:
                    if isinstance(hook, SegVisualizationHook) and hook.draw:
                        _draw(hook, runner, batch, outputs)
    if len(known) == len(metrics):  # else a hook may wait for a metric that is not known here
        raise_problems(_best_problems(runner.hooks, list(dict.fromkeys(names)), absent))


def _first_batches(dataset: Any, batch_size: int) -> Iterator[tuple[str, range]]:
    """Yields key and indices of the first images, or of the first images of each domain."""
    key, first = 'val_dataloader.dataset', 0
    if not hasattr(dataset, 'domains'):
        yield key, range(min(batch_size, len(dataset)))
        return
    for name, part in dataset.domains.items():
        yield f'{key}.domains.{name}', range(first, first + min(batch_size, len(part)))
        first += len(part)


def _names_of(
    metric: BaseMetric, batch: Any, samples: Sequence[dict], absent: Sequence[str]
) -> list[str]:
    """Measures some images, and returns the names of the metrics of all."""
    rehearsed = copy.deepcopy(metric)
    for part in (rehearsed, *iou_metrics([rehearsed])):
        part.output_dir = None  # a rehearsal writes nothing
    # no table of a few images, and no warnings of NumPy about absent classes
    with only_warnings(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        rehearsed.process(batch, samples)
        names = list(rehearsed.compute_metrics(rehearsed.results))
    if isinstance(metric, ClassIoUMetric):  # other images may contain other classes
        shown = [name for name in metric.dataset_meta['classes'] if name not in absent]
        names += metric.names_for(shown)
    prefix = f'{metric.prefix}/' if metric.prefix else ''
    return [f'{prefix}{name}' for name in names]


def _draw(hook: SegVisualizationHook, runner: Runner, batch: Any, outputs: Sequence[Any]) -> None:
    # not deep: the visualizer holds a figure and open files
    rehearsed = copy.copy(hook)
    rehearsed.interval, rehearsed.show = 1, False
    visualizer = hook._visualizer
    backends, visualizer._vis_backends = visualizer._vis_backends, {}  # nothing is kept
    try:
        rehearsed.after_val_iter(runner, 0, batch, outputs)
    finally:
        visualizer._vis_backends = backends


def iou_metrics(metrics: Iterable[Any]) -> list[IoUMetric]:
    """Finds the metrics that measure IoU, including those of each domain."""
    parts = list(metrics)
    for metric in metrics:
        by_domain = getattr(metric, 'metrics', None)
        parts += by_domain.values() if isinstance(by_domain, Mapping) else []
    return [part for part in parts if isinstance(part, IoUMetric)]


def _best_problems(
    hooks: Iterable[Hook], names: Sequence[str], absent: Sequence[str]
) -> Iterator[Problem]:
    """Checks that the metrics that pick the best checkpoint or end a training will be measured."""
    for hook in hooks:
        setting, monitored = 'EarlyStoppingHook.monitor', list[str]()
        if isinstance(hook, EarlyStoppingHook):
            monitored = [hook.monitor]
        elif isinstance(hook, CheckpointHook) and hook.save_best:
            setting, monitored = 'default_hooks.checkpoint.save_best', hook.key_indicators
        for name in monitored:
            # mmengine resolves 'auto' at the first validation
            if name not in (*names, 'auto'):
                is_absent = name.partition('.')[2] in absent
                mistake = 'no validation mask shows this class' if is_absent else 'no such metric'
                yield Problem(f'{setting}={name!r}', mistake, ', '.join(names))


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
            sizes = ' and '.join(f'{path} of {w}×{h}' for (w, h), path in [*paths.items()][:2])
            yield Problem(f'{key}.batch_size={loader.batch_size}', f'{sizes} in one batch', '1')
            return
