"""Rehearses a validation before a training, which else may end at its first one."""

import copy
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook
from mmengine.logging import MMLogger
from mmengine.runner import Runner
from mmengine.runner.amp import autocast
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric
from torch import Tensor

from mmseg_cct.datasets.checks import leaf_datasets
from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.engine.undisturbed import undisturbed
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.utils.library_errors import library_errors_as_one_line as _explained

_IOU_METRICS = ('mIoU', 'mDice', 'mFscore')


def rehearse_validation(runner: Runner) -> None:
    """Takes the first validation batch through pipeline, model, metrics and visualizer.

    Of several domains it takes the first batch of each. The training stays as it would be: random
    states and modes are restored, metrics are copies, and nothing is written. Every rank takes the
    same batches and gathers nothing. Metrics other than MMSeg's and this package's IoU may write
    files, so they are left out. Raises `UserError` if the validation cannot be, or lacks the metric
    that `save_best` names.

    Args:
        runner: The runner, before its training.
    """
    loop, dataset = runner.val_loop, runner.val_dataloader.dataset
    _require_palette(dataset)
    evaluator = getattr(loop, 'evaluator', None)
    metrics = list(getattr(evaluator, 'metrics', ()))
    require_iou_metrics(metrics, 'val_evaluator')
    names: list[str] | None = []
    with undisturbed(unwrap_model(runner.model), seed=0):
        for key, images in _first_batches(dataset, runner.val_dataloader.batch_size or 1):
            found = _rehearse_batch(runner, metrics, images, key)
            names = None if names is None or found is None else [*names, *found]
    if names is not None:
        _require_best(runner.hooks, list(dict.fromkeys(names)))


def _rehearse_batch(
    runner: Runner, metrics: Sequence[BaseMetric], images: Iterable[int], key: str
) -> list[str] | None:
    """Validates on some images; gives the names of all metrics, or `None` if some are unknown."""
    loader = runner.val_dataloader
    with _explained(key, 'its first images do not load', 'images for a batch'):
        batch = loader.collate_fn([loader.dataset[index] for index in images])
    outputs = _predict(runner, batch, key)
    names = _metric_names(metrics, batch, [sample.to_dict() for sample in outputs], key)
    for hook in runner.hooks:
        if isinstance(hook, SegVisualizationHook) and hook.draw:
            with _explained('visualizer', 'the first image cannot be drawn', 'one that fits'):
                _draw(hook, runner, batch, outputs)
    return names


def _first_batches(dataset: Any, batch_size: int) -> Iterator[tuple[str, range]]:
    """Yields key and numbers of the first images, of several domains those of each."""
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
    with (
        _explained(key, fails, fits),
        autocast(enabled=getattr(runner.val_loop, 'fp16', False)),
    ):
        try:
            return runner.model.val_step(batch)
        except Exception:
            _require_channels(unwrap_model(runner.model), batch)
            raise


def _require_channels(model: Any, batch: Any) -> None:
    """Checks what a failed prediction may come from: the channels that the decoder takes in."""
    given = expected = None
    with suppress(Exception):  # no such decoder, or what is before it fails
        head = model.decode_head
        images = model.data_preprocessor(batch, False)['inputs']
        features = head._transform_inputs(model.extract_feat(images))
        if isinstance(features, Tensor):
            given, expected = head.in_channels, features.shape[1]
        else:
            given, expected = list(head.in_channels), [part.shape[1] for part in features]
    if given != expected:
        raise UserError(
            f'model.decode_head.in_channels={given}: expected {expected}, the channels of the '
            'features before it'
        ) from None


def _metric_names(
    metrics: Sequence[BaseMetric], batch: Any, samples: Sequence[dict], key: str
) -> list[str] | None:
    """Names of all metrics, or `None` where some are unknown."""
    names: list[str] = []
    for metric in metrics:
        if not isinstance(metric, (IoUMetric, MultiDomainIoUMetric)) or _formats_only(metric):
            return None
        _require_truth(samples, key)
        with _explained('val_evaluator', 'the first images cannot be measured', 'fitting metrics'):
            names += _names_of(metric, batch, samples)
    return names


def _names_of(metric: BaseMetric, batch: Any, samples: Sequence[dict]) -> list[str]:
    rehearsed = copy.deepcopy(metric)
    domains = rehearsed.metrics if isinstance(rehearsed, MultiDomainIoUMetric) else {}
    for part in (rehearsed, *domains.values()):
        part.output_dir = None  # a rehearsal writes nothing
    with _without_table():
        rehearsed.process(batch, samples)
        names = list(rehearsed.compute_metrics(rehearsed.results))
    if isinstance(metric, ClassIoUMetric):  # other classes occur in other images
        names += [f'IoU.{name}' for name in metric.dataset_meta['classes']]
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


def _require_best(hooks: Sequence[Any], names: Sequence[str]) -> None:
    for hook in hooks:
        if not isinstance(hook, CheckpointHook) or not hook.save_best:
            continue
        for key in hook.key_indicators:
            if key != 'auto' and key not in names:
                raise UserError(
                    f'default_hooks.checkpoint.save_best={key!r}: no such metric; expected '
                    f'{", ".join(names)} or auto'
                )


def require_iou_metrics(metrics: Sequence[Any], key: str) -> None:
    """Checks the names of the measures, which MMSeg looks at after the last image.

    Args:
        metrics: Metrics of an evaluator; those that measure no IoU are left alone.
        key: The evaluator's key in the config.

    Raises:
        UserError: One is unknown.
    """
    for part in iou_metrics(metrics):
        given = [part.metrics] if isinstance(part.metrics, str) else part.metrics
        if not isinstance(given, (list, tuple)) or any(name not in _IOU_METRICS for name in given):
            raise UserError(
                f'{key}.iou_metrics={given!r}: expected some of {", ".join(_IOU_METRICS)}'
            )


def iou_metrics(metrics: Sequence[Any]) -> list[IoUMetric]:
    """Finds the metrics that measure IoU, those of each domain too.

    Args:
        metrics: Metrics of an evaluator.

    Returns:
        Those of MMSeg and of this package.
    """
    parts = list(metrics)
    for metric in metrics:
        if isinstance(metric, MultiDomainIoUMetric):
            parts += metric.metrics.values()
    return [part for part in parts if isinstance(part, IoUMetric)]


def _require_truth(samples: Sequence[dict], key: str) -> None:
    for sample in samples:
        place = f'{key}.pipeline: {sample.get("img_path") or "an image"}'
        truth = sample.get('gt_sem_seg')
        if truth is None:
            raise UserError(f'{place} comes without its mask; expected LoadAnnotations')
        size, true_size = (
            tuple(part['data'].shape[-2:]) for part in (sample['pred_sem_seg'], truth)
        )
        if size != true_size:
            raise UserError(
                f'{place} has a mask of {true_size[1]}×{true_size[0]} pixels and a prediction of '
                f'{size[1]}×{size[0]}; expected LoadAnnotations after any Resize, and no crop'
            )


def _require_palette(dataset: Any) -> None:
    for leaf in leaf_datasets(dataset):
        meta = getattr(leaf, 'metainfo', None) or {}
        classes, palette = meta.get('classes') or (), meta.get('palette')
        if palette is None or len(palette) == 0:
            continue
        if len(palette) < len(classes):
            raise UserError(
                f'val_dataloader.dataset.metainfo.palette: {len(palette)} colours; expected '
                f'{len(classes)}, one for each class'
            )
        for colour in palette:
            if len(colour) != 3 or not all(0 <= value <= 255 for value in colour):
                raise UserError(
                    f'val_dataloader.dataset.metainfo.palette: {list(colour)}; expected red, green '
                    'and blue from 0 to 255'
                )


def _formats_only(metric: BaseMetric) -> bool:
    if isinstance(metric, MultiDomainIoUMetric):
        return bool(metric.kwargs.get('format_only', False))
    return bool(getattr(metric, 'format_only', False))


@contextmanager
def _without_table() -> Iterator[None]:
    """Keeps a metric's table of one image out of the log, and NumPy's word on absent classes.

    Yields:
        Nothing; the body runs inside.
    """
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)
