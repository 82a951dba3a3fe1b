"""Rehearses a validation before a training, which may otherwise end at its first one."""

import copy
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook, EarlyStoppingHook
from mmengine.optim.scheduler.param_scheduler import ReduceOnPlateauParamScheduler
from mmengine.runner import Runner
from mmengine.runner.amp import autocast
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric

from mmseg_cct.datasets.files.images import image_size
from mmseg_cct.datasets.leaves import image_loader, infos_of, leaf_datasets
from mmseg_cct.engine.metrics import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.engine.models import eval_sandbox, unwrap_model
from mmseg_cct.errors import Problem, raise_problems
from mmseg_cct.utils.library_errors import library_errors_as_one_line as _explained
from mmseg_cct.utils.log import only_warnings

_IOU_METRICS = ('mIoU', 'mDice', 'mFscore')


def rehearse_validation(runner: Runner, absent: Sequence[str] = ()) -> None:
    """Runs the first validation batch, or that of each domain, through pipeline, model and metrics.

    The training is not affected: random states and modes are restored, metrics are copies, and
    nothing is written. Every rank runs the same batches and gathers nothing. Metrics other than
    MMSeg's and this package's IoU may write files, so they are left out. `absent` are the classes
    that no validation mask shows.
    """
    loop, dataset = runner.val_loop, runner.val_dataloader.dataset
    evaluator = getattr(loop, 'evaluator', None)
    metrics = list(getattr(evaluator, 'metrics', ()))
    raise_problems(metric_problems(metrics, 'val_evaluator'))
    names: list[str] | None = []
    with eval_sandbox(unwrap_model(runner.model), seed=0):
        for key, images in _first_batches(dataset, runner.val_dataloader.batch_size or 1):
            found = _rehearse_batch(runner, metrics, images, key, absent)
            names = None if names is None or found is None else [*names, *found]
    if names is not None:
        schedulers = runner.param_schedulers or []
        by_name = schedulers.values() if isinstance(schedulers, dict) else [schedulers]
        parts = [*runner.hooks, *itertools.chain.from_iterable(by_name)]
        raise_problems(best_problems(parts, list(dict.fromkeys(names)), absent))


def _rehearse_batch(
    runner: Runner,
    metrics: Sequence[BaseMetric],
    images: Iterable[int],
    key: str,
    absent: Sequence[str],
) -> list[str] | None:
    """Validates on some images; returns the names of all metrics, `None` if some are unknown."""
    loader, names = runner.val_dataloader, list[str]()
    with _explained(key, 'its first images do not load', 'images for a batch'):
        batch = loader.collate_fn([loader.dataset[index] for index in images])
    fits = 'a model whose parts fit together, and a val_dataloader and model.test_cfg that fit it'
    precision = autocast(enabled=getattr(runner.val_loop, 'fp16', False))
    with _explained(key, 'its first images do not pass the model', fits), precision:
        outputs = runner.model.val_step(batch)
    samples = [sample.to_dict() for sample in outputs]
    known = [*itertools.takewhile(_is_rehearsed, metrics)]
    for metric in known:
        raise_problems(truth_problems(samples, key))
        with _explained('val_evaluator', 'the first images cannot be measured', 'fitting metrics'):
            names += _names_of(metric, batch, samples, absent)
    for hook in runner.hooks:
        if isinstance(hook, SegVisualizationHook) and hook.draw:
            with _explained('visualizer', 'the first image cannot be drawn', 'one that fits'):
                _draw(hook, runner, batch, outputs)
    return names if len(known) == len(metrics) else None


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
    rehearsed = copy.deepcopy(metric)
    domains = rehearsed.metrics if isinstance(rehearsed, MultiDomainIoUMetric) else {}
    for part in (rehearsed, *domains.values()):
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


def _is_rehearsed(metric: BaseMetric) -> bool:
    if isinstance(metric, MultiDomainIoUMetric):
        return not metric.kwargs.get('format_only', False)
    return isinstance(metric, IoUMetric) and not metric.format_only


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
    for place, key, rule in {*itertools.chain.from_iterable(map(_waited_for, parts))}:
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
        sizes = [part['data'].shape[-2:] for part in (truth, sample['pred_sem_seg'])]
        if sizes[0] != sizes[1]:
            mask, predicted = (f'{width}×{height}' for height, width in sizes)
            found = f'a mask of {mask} pixels and a prediction of {predicted}'
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
