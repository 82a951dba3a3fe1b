"""Validates data, classes and checkpoint before a run."""

import copy
import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset
from mmengine.dist import is_main_process
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS, DefaultScope
from mmengine.runner import BaseLoop, Runner
from mmengine.runner.amp import autocast
from mmseg.datasets import BaseSegDataset
from mmseg.evaluation import IoUMetric

from mmseg_cct.config.walk import sets_by_domain
from mmseg_cct.datasets.leaves import image_paths, leaf_datasets
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.engine.checkpoints import check_checkpoint
from mmseg_cct.engine.findings import absent_from
from mmseg_cct.engine.labels_record import (
    LABELS,
    Labels,
    below_folder,
    checksum,
    read_labels,
    trained_images,
    write_labels,
)
from mmseg_cct.engine.models import eval_sandbox, unwrap_model
from mmseg_cct.engine.weights import require_initial_weights, require_matching_weights
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.log import only_warnings, say, warn
from mmseg_cct.utils.processes import on_first_process
from mmseg_cct.utils.text import library_errors_as_one_line

from .classes import (
    head_ignore_problems,
    ignore_problems,
    order_problems,
    output_problems,
    warn_of_losses_that_count_ignored_pixels,
)
from .files import check_evaluation_data, check_pairs, leaks
from .settings import check_pretrained_weights, training_problems

_FITS = 'a pipeline that loads masks after any Resize, and a model and metrics that fit it'


@HOOKS.register_module()
class PreflightHook(Hook):
    """Checks the data and the classes of a training or a test, and the weights that it starts from.

    Without it, a missing validation mask would end a training only at the first validation, and
    mmengine would test a checkpoint of another number of classes with random weights. Before a
    training, the first validation batch goes through pipeline, model and metrics.

    Args:
        files: Whether to read every image and mask.
    """

    # After mmengine's own hooks have filled in what the run knows.
    priority = 'HIGH'

    def __init__(self, files: bool = True) -> None:
        self.files = files

    def before_train(self, runner: Runner) -> None:
        """Checks settings, weights, model and data, and rehearses a validation."""
        _check_settings(runner.cfg)
        raise_problems(_model_problems(runner))
        if self.files:
            absent = _check_files(runner)
            if absent and is_main_process():
                warn(absent_from('validation', absent))
        keep_labeled_images(runner)
        if runner.val_loop is not None:
            rehearse_validation(runner)
        if is_main_process():
            warn_of_losses_that_count_ignored_pixels(_model(runner))
            warn_of_unmixed_images(_model(runner), runner.train_dataloader)
            say(describe_training(runner))

    def before_test(self, runner: Runner) -> None:
        """Checks model, metrics and images."""
        dataset, key = runner.test_dataloader.dataset, 'test_dataloader.dataset'
        metrics = _iou_metrics(getattr(runner.test_evaluator, 'metrics', ()))
        ignored = (ignore_problems(metric, 'test_evaluator') for metric in metrics)
        raise_problems(chain(output_problems(_model(runner), _meta(dataset), key), *ignored))
        if self.files:
            on_first_process(lambda: check_evaluation_data(dataset, key))
            # images that the checkpoint was trained on
            folder = Path(runner._load_from or '').parent
            on_first_process(lambda: _warn_each(trained_images(read_labels(folder), dataset)))

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Checks that logits are finite: NaN would become class 0 without a word."""
        for sample in outputs or ():
            if 'seg_logits' in sample and not sample.seg_logits.data.isfinite().all():
                image = sample.metainfo.get('img_path') or f'image {batch_idx}'
                raise UserError(image, 'the logits are not finite', 'finite pixels and weights')

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint that the run starts from, resumes or tests."""
        name, resumed = runner._load_from or 'the checkpoint', runner._resume
        check_checkpoint(checkpoint, name, training=resumed)
        saved = (checkpoint.get('meta') or {}).get('dataset_meta')
        # loops that a run does not need are still settings
        if isinstance(runner._train_loop, BaseLoop):
            trained = _meta(runner.train_dataloader.dataset)
            raise_problems(order_problems(trained, saved, 'the checkpoint'))
            if not resumed:
                require_initial_weights(_model(runner), checkpoint, name)
        elif isinstance(runner._test_loop, BaseLoop):
            tested = _meta(runner.test_dataloader.dataset)
            raise_problems(order_problems(tested, saved, 'the checkpoint'))
            # Published checkpoints lack the auxiliary decoders, which testing never runs.
            require_matching_weights(_model(runner), checkpoint, name, training=False)


def _check_settings(config: Any) -> None:
    """Checks settings that train otherwise than meant, and the weights that `init_cfg` names."""
    if config.get('model') is None:  # a runner that is built from objects
        return
    scope = config.get('default_scope')
    with DefaultScope.overwrite_default_scope(scope):
        raise_problems(training_problems(config))
    on_first_process(lambda: check_pretrained_weights(config.model, scope))


def _model_problems(runner: Runner) -> Iterator[Problem]:
    model, trained, key = _model(runner), runner.train_dataloader.dataset, 'train_dataloader'
    yield from output_problems(model, _meta(trained), f'{key}.dataset')
    yield from head_ignore_problems(model, trained)
    if runner.val_loop is not None:
        dataset, key = runner.val_dataloader.dataset, 'val_dataloader.dataset'
        yield from output_problems(model, _meta(dataset), key)
        yield from order_problems(_meta(trained), _meta(dataset), key)
        for metric in _iou_metrics(_validation_metrics(runner)):
            yield from ignore_problems(metric, 'val_evaluator')


def _check_files(runner: Runner) -> list[str]:
    """Checks the pipelines, images and masks of a training.

    Returns the classes that no validation mask shows.
    """
    trained, problems, absent = runner.train_dataloader.dataset, list[UserError](), list[str]()
    for name, part in sets_by_domain(trained).items():
        if isinstance(part, SemiSegDataset):
            try:
                check_pairs(part)
            except UserError as error:
                key = f'train_dataloader.dataset.domains.{name}'
                problems.append(error if name is None else error.within(key))
    evaluated = {}
    # decoding the masks of a large segmentation set would take minutes
    leaves = leaf_datasets(trained)
    if all(isinstance(s, BaseDataset) and not isinstance(s, BaseSegDataset) for s in leaves):
        evaluated['train_dataloader.dataset'] = trained
    if runner.val_loop is not None:
        evaluated['val_dataloader.dataset'] = runner.val_dataloader.dataset
    for key, dataset in evaluated.items():
        check = functools.partial(check_evaluation_data, dataset, key)
        try:
            absent = on_first_process(check)
        except UserError as error:
            problems.append(error)
    raise_problems(problems)
    validated = evaluated.get('val_dataloader.dataset')
    on_first_process(lambda: _warn_each(leaks(trained, validated)))
    return absent if validated is not None else []


def _warn_each(lines: Iterable[str]) -> None:
    for line in lines:
        warn(line)


def warn_of_unmixed_images(model: Any, dataloader: Any) -> None:
    """Warns where CutMix mixes nothing, as a process has one unlabelled image in a batch."""
    ratio = getattr(dataloader.dataset, 'labeled_per_unlabeled', 1)
    if getattr(model, 'cutmix', None) and dataloader.batch_size < 2 * ratio:
        mistake = 'CutMix mixes the unlabelled images of a process, and there is one'
        expected = f'{2 * ratio} or more on each, or model.cutmix=None'
        key = f'train_dataloader.batch_size={dataloader.batch_size}'
        warn(str(Problem(key, mistake, expected)))


def keep_labeled_images(runner: Runner) -> None:
    """Records the labelled images of a training that begins, or compares them when it resumes."""
    dataset = runner.train_dataloader.dataset
    if not isinstance(dataset, SemiSegDataset):
        return
    labeled = sorted(image_paths(dataset.labeled))
    if not labeled:  # a data set that generates its images
        return
    loop = runner.val_loop
    validated = sorted(image_paths(loop.dataloader.dataset)) if loop else []
    unlabeled = list(image_paths(dataset.unlabeled)) if dataset.unlabeled else []
    labels = Labels(labeled, len(unlabeled), validated, checksum(below_folder(unlabeled)))
    recorded = read_labels(runner.work_dir) if runner._resume else None
    if recorded is None:
        if is_main_process():
            write_labels(runner.work_dir, labels)
    elif below_folder(recorded.labeled) != below_folder(labeled):
        began = f'{len(recorded.labeled)} were when the training began'
        problem = f'{len(labeled)} images are labelled, {began} ({runner.work_dir}/{LABELS})'
        raise UserError('--resume', problem, 'the same, or another --work-dir')
    else:
        if below_folder(recorded.validated) != below_folder(validated):
            warn('--resume: other images validate than at the beginning; scores do not compare')
        if (recorded.unlabeled, recorded.pool or labels.pool) != (labels.unlabeled, labels.pool):
            numbers = f'{labels.unlabeled} now, {recorded.unlabeled} at the beginning'
            warn(f'--resume: other unlabelled images than when the training began ({numbers})')


def rehearse_validation(runner: Runner) -> None:
    """Runs the first validation batch, or that of each domain, through pipeline, model and metrics.

    The training is not affected: random states and modes are restored, metrics are copies, and
    nothing is written. Every rank runs the same batches and gathers nothing. Metrics other than
    MMSeg's and this package's IoU may write files, so they are left out.
    """
    loader, first = runner.val_dataloader, 0
    parts = [(metric, _iou_metrics([metric])) for metric in _validation_metrics(runner)]
    known = [metric for metric, ious in parts if ious and not any(i.format_only for i in ious)]
    with eval_sandbox(unwrap_model(runner.model), seed=0):
        for name, part in sets_by_domain(loader.dataset).items():
            key = 'val_dataloader.dataset' + ('' if name is None else f'.domains.{name}')
            images = range(first, first + min(loader.batch_size or 1, len(part)))
            first += len(part)  # domains stand one after the other
            fails = 'its first images cannot be validated'
            with library_errors_as_one_line(key, fails, _FITS):
                batch = loader.collate_fn([loader.dataset[index] for index in images])
                with autocast(enabled=getattr(runner.val_loop, 'fp16', False)):
                    outputs = runner.model.val_step(batch)
                samples = [sample.to_dict() for sample in outputs]
                for metric in known:
                    _measure(metric, batch, samples)


def _measure(metric: BaseMetric, batch: Any, samples: Sequence[dict]) -> None:
    """Measures some images by a copy of a metric, which writes nothing."""
    rehearsed = copy.deepcopy(metric)
    for part in (rehearsed, *_iou_metrics([rehearsed])):
        part.output_dir = None
    # no table of a few images, and no warnings of NumPy about absent classes
    with only_warnings(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        rehearsed.process(batch, samples)
        rehearsed.compute_metrics(rehearsed.results)


def _validation_metrics(runner: Runner) -> list[BaseMetric]:
    return list(getattr(getattr(runner.val_loop, 'evaluator', None), 'metrics', ()))


def _iou_metrics(metrics: Iterable[Any]) -> list[IoUMetric]:
    """Finds the metrics that measure IoU, including those of each domain."""
    parts = list(metrics)
    for metric in metrics:
        by_domain = getattr(metric, 'metrics', None)
        parts += by_domain.values() if isinstance(by_domain, Mapping) else []
    return [part for part in parts if isinstance(part, IoUMetric)]


def describe_training(runner: Runner) -> str:
    """Describes in one line what a run trains on, with numbers to check."""
    dataset = runner.train_dataloader.dataset
    described = []
    for name, part in sets_by_domain(dataset).items():
        text = '' if name is None else f'{name}: '
        if not isinstance(part, SemiSegDataset):
            text += f'{len(part)} images'
        elif part.unlabeled is None:
            text += f'{len(part.labeled)} labelled images'
        else:
            text += f'{len(part.labeled)} labelled and {len(part.unlabeled)} unlabelled images'
        if classes := _meta(part).get('classes'):
            text += f', {len(classes)} classes ({", ".join(map(str, classes))})'
        described.append(text)
    batch_size = runner.train_dataloader.batch_size * runner.world_size
    line = f'Training on {"; ".join(described)}; batch size {batch_size}'
    if runner.val_loop is not None:
        line += f'; validating on {len(runner.val_loop.dataloader.dataset)} images'
    return line


def _model(runner: Runner) -> Any:
    model = unwrap_model(runner.model)
    return model.module if isinstance(model, BaseTTAModel) else model


def _meta(dataset: Any) -> dict:
    return getattr(dataset, 'metainfo', None) or {}
