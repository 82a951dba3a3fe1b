"""Rehearses a validation before a training, which may otherwise end at its first one."""

import copy
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.logging import MMLogger
from mmengine.runner import Runner
from mmengine.runner.amp import autocast
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric

from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.engine.undisturbed import undisturbed
from mmseg_cct.errors import raise_problems
from mmseg_cct.evaluation import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.utils.library_errors import library_errors_as_one_line as _explained

from .first_batch import best_problems, metric_problems, truth_problems


def rehearse_validation(runner: Runner, absent: Sequence[str] = ()) -> None:
    """Runs the first validation batch through pipeline, model, metrics and visualizer.

    With several domains it runs the first batch of each. The training is not affected: random
    states and modes are restored, metrics are copies, and nothing is written. Every rank runs the
    same batches and gathers nothing. Metrics other than MMSeg's and this package's IoU may write
    files, so they are left out. `absent` are the classes that no validation mask shows.

    Raises:
        UserError: The validation fails, or lacks a metric that a hook or a scheduler waits for.
    """
    loop, dataset = runner.val_loop, runner.val_dataloader.dataset
    evaluator = getattr(loop, 'evaluator', None)
    metrics = list(getattr(evaluator, 'metrics', ()))
    raise_problems(metric_problems(metrics, 'val_evaluator'))
    names: list[str] | None = []
    with undisturbed(unwrap_model(runner.model), seed=0):
        for key, images in _first_batches(dataset, runner.val_dataloader.batch_size or 1):
            found = _rehearse_batch(runner, metrics, images, key, absent)
            names = None if names is None or found is None else [*names, *found]
    if names is not None:
        schedulers = runner.param_schedulers or []
        by_name = schedulers.values() if isinstance(schedulers, dict) else [schedulers]
        parts = [*runner.hooks, *chain.from_iterable(by_name)]
        raise_problems(best_problems(parts, list(dict.fromkeys(names)), absent))


def _rehearse_batch(
    runner: Runner,
    metrics: Sequence[BaseMetric],
    images: Iterable[int],
    key: str,
    absent: Sequence[str],
) -> list[str] | None:
    """Validates on some images; returns the names of all metrics, `None` if some are unknown."""
    loader = runner.val_dataloader
    with _explained(key, 'its first images do not load', 'images for a batch'):
        batch = loader.collate_fn([loader.dataset[index] for index in images])
    outputs = _predict(runner, batch, key)
    samples = [sample.to_dict() for sample in outputs]
    names = _metric_names(metrics, batch, samples, key, absent)
    for hook in runner.hooks:
        if isinstance(hook, SegVisualizationHook) and hook.draw:
            with _explained('visualizer', 'the first image cannot be drawn', 'one that fits'):
                _draw(hook, runner, batch, outputs)
    return names


def _first_batches(dataset: Any, batch_size: int) -> Iterator[tuple[str, range]]:
    """Yields key and indices of the first images, or of the first images of each domain."""
    key, first = 'val_dataloader.dataset', 0
    if not hasattr(dataset, 'domains'):
        yield key, range(min(batch_size, len(dataset)))
        return
    for name, part in dataset.domains.items():
        yield f'{key}.domains.{name}', range(first, first + min(batch_size, len(part)))
        first += len(part)


def _predict(runner: Runner, batch: Any, key: str) -> Sequence[Any]:
    fails = 'its first images do not pass the model'
    fits = 'a model whose parts fit together, and a val_dataloader and model.test_cfg that fit it'
    with _explained(key, fails, fits), autocast(enabled=getattr(runner.val_loop, 'fp16', False)):
        return runner.model.val_step(batch)


def _metric_names(
    metrics: Sequence[BaseMetric],
    batch: Any,
    samples: Sequence[dict],
    key: str,
    absent: Sequence[str],
) -> list[str] | None:
    """Returns the names of all metrics, or `None` if some are unknown."""
    names: list[str] = []
    for metric in metrics:
        if not isinstance(metric, (IoUMetric, MultiDomainIoUMetric)) or _formats_only(metric):
            return None
        raise_problems(truth_problems(samples, key))
        with _explained('val_evaluator', 'the first images cannot be measured', 'fitting metrics'):
            names += _names_of(metric, batch, samples, absent)
    return names


def _names_of(
    metric: BaseMetric, batch: Any, samples: Sequence[dict], absent: Sequence[str]
) -> list[str]:
    rehearsed = copy.deepcopy(metric)
    domains = rehearsed.metrics if isinstance(rehearsed, MultiDomainIoUMetric) else {}
    for part in (rehearsed, *domains.values()):
        part.output_dir = None  # a rehearsal writes nothing
    with _without_table():
        rehearsed.process(batch, samples)
        names = list(rehearsed.compute_metrics(rehearsed.results))
    if isinstance(metric, ClassIoUMetric):  # other images may contain other classes
        shown = [name for name in metric.dataset_meta['classes'] if name not in absent]
        names += metric.names_for(shown)
    prefix = f'{metric.prefix}/' if metric.prefix else ''
    return [f'{prefix}{name}' for name in dict.fromkeys(names)]


def _draw(hook: SegVisualizationHook, runner: Runner, batch: Any, outputs: Sequence[Any]) -> None:
    rehearsed = copy.copy(hook)
    rehearsed.interval, rehearsed.show = 1, False
    visualizer = hook._visualizer
    backends, visualizer._vis_backends = visualizer._vis_backends, {}  # nothing is kept
    try:
        rehearsed.after_val_iter(runner, 0, batch, outputs)
    finally:
        visualizer._vis_backends = backends


def _formats_only(metric: BaseMetric) -> bool:
    if isinstance(metric, MultiDomainIoUMetric):
        return bool(metric.kwargs.get('format_only', False))
    return bool(getattr(metric, 'format_only', False))


@contextmanager
def _without_table() -> Iterator[None]:
    """Hides a metric's table of a few images, and NumPy's warnings about absent classes."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)
