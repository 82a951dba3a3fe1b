"""Validates data, classes and checkpoint before a run."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS, DefaultScope
from mmengine.runner import BaseLoop, Runner
from mmseg.datasets import BaseSegDataset

from mmseg_cct.config.limits import value_problems
from mmseg_cct.datasets.files.leaks import describe_leaks
from mmseg_cct.datasets.leaves import image_paths, leaf_datasets
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.watched_files import watch_files
from mmseg_cct.engine.checkpoints import check_checkpoint
from mmseg_cct.engine.findings import absent_from
from mmseg_cct.engine.labels_record import read_labels, trained_images
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_initial_weights, require_matching_weights
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.log import say, warn
from mmseg_cct.utils.processes import gather, on_first_process

from .classes import (
    bank_problems,
    head_ignore_problems,
    ignore_problems,
    mapping_problems,
    order_problems,
    output_problems,
    warn_of_losses_that_count_ignored_pixels,
)
from .combinations import training_problems, warn_of_unmixed_images
from .files import check_pairs, look_at_evaluation_data
from .labeled_images import keep_labeled_images
from .pretrained import check_pretrained_weights
from .rehearsal import batch_problems, iou_metrics, rehearse_validation

Problems = Iterator[Problem | UserError]


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
        absent: list[str] = []  # classes that no validation mask shows
        raise_problems(_setting_problems(runner))
        raise_problems(_model_problems(runner))
        if self.files:
            raise_problems(_file_problems(runner, absent))
        keep_labeled_images(runner)
        if runner.val_loop is not None:
            watch_files(runner.val_dataloader.dataset)
            # each process has batches of its own
            problems = batch_problems(runner.val_dataloader, 'val_dataloader') if self.files else ()
            raise_problems(chain.from_iterable(gather([*problems])))
            rehearse_validation(runner, absent)
        if is_main_process():
            warn_of_losses_that_count_ignored_pixels(_model(runner))
            warn_of_unmixed_images(_model(runner), runner.train_dataloader)
            say(describe_training(runner))

    def before_test(self, runner: Runner) -> None:
        """Checks model, metrics and images."""
        dataset, key = runner.test_dataloader.dataset, 'test_dataloader.dataset'
        metrics = iou_metrics(getattr(runner.test_evaluator, 'metrics', ()))
        ignored = (ignore_problems(metric, 'test_evaluator') for metric in metrics)
        raise_problems(chain(output_problems(_model(runner), _meta(dataset), key), *ignored))
        if self.files:
            on_first_process(lambda: look_at_evaluation_data(dataset, key))
            on_first_process(lambda: _warn_of_trained_images(runner))
        watch_files(dataset)

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


def _setting_problems(runner: Runner) -> Problems:
    """Checks settings that fail late or not at all, and the weights that `init_cfg` names."""
    config = runner.cfg
    if config.get('model') is None:  # a runner that is built from objects
        return
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        yield from value_problems(config)
        yield from training_problems(config)
    on_first_process(lambda: check_pretrained_weights(config.model, config.get('default_scope')))


def _model_problems(runner: Runner) -> Problems:
    """Checks that the model and the metrics of a training fit the data."""
    model, trained, key = _model(runner), runner.train_dataloader.dataset, 'train_dataloader'
    yield from output_problems(model, _meta(trained), f'{key}.dataset')
    yield from bank_problems(model, _meta(trained))
    yield from head_ignore_problems(model, trained)
    if runner.val_loop is not None:
        dataset, key = runner.val_dataloader.dataset, 'val_dataloader.dataset'
        metrics = getattr(getattr(runner.val_loop, 'evaluator', None), 'metrics', ())
        yield from output_problems(model, _meta(dataset), key)
        yield from order_problems(_meta(trained), _meta(dataset), key)
        yield from mapping_problems(trained, dataset, key)
        for metric in iou_metrics(metrics):
            yield from ignore_problems(metric, 'val_evaluator')


def _file_problems(runner: Runner, absent: list[str]) -> Problems:
    """Checks the pipelines, images and masks of a training; notes classes absent from val."""
    trained = runner.train_dataloader.dataset
    for name, part in getattr(trained, 'domains', {None: trained}).items():
        if isinstance(part, SemiSegDataset):
            try:
                check_pairs(part)
            except UserError as error:
                key = f'train_dataloader.dataset.domains.{name}'
                yield error if name is None else error.within(key)
    # decoding the masks of a large segmentation set would take minutes
    leaves = leaf_datasets(trained)
    if all(isinstance(s, BaseDataset) and not isinstance(s, BaseSegDataset) for s in leaves):
        on_first_process(lambda: look_at_evaluation_data(trained, 'train_dataloader.dataset'))
    dataset = None if runner.val_loop is None else runner.val_dataloader.dataset
    on_first_process(lambda: _warn_of_leaks(trained, dataset))
    if dataset is not None:
        key = 'val_dataloader.dataset'
        absent += on_first_process(lambda: look_at_evaluation_data(dataset, key))
        if absent and is_main_process():
            warn(absent_from('validation', absent))


def _warn_of_trained_images(runner: Runner) -> None:
    labels = read_labels(Path(runner._load_from or '').parent)
    for line in trained_images(labels, runner.test_dataloader.dataset):
        warn(line)


def _warn_of_leaks(trained: Any, validated: Any) -> None:
    """Warns of images that are labelled and unlabelled, or trained and validated on."""
    parts = list(getattr(trained, 'domains', {None: trained}).values())
    labeled = [getattr(part, 'labeled', part) for part in parts]
    unlabeled = [part.unlabeled for part in parts if getattr(part, 'unlabeled', None) is not None]
    val = [] if validated is None else [validated]
    sets = {'labelled': labeled, 'validated on': val, 'unlabelled': unlabeled}
    paths = {use: [*chain.from_iterable(map(image_paths, parts))] for use, parts in sets.items()}
    # partly labelled images are meant to be both
    leaves = chain.from_iterable(map(leaf_datasets, unlabeled))
    twice = {path for leaf in leaves for path in getattr(leaf, 'used_twice', ())}
    paths['unlabelled'] = [path for path in paths['unlabelled'] if path not in twice]
    paths['labelled'] += sorted(twice)
    for line in describe_leaks(paths):
        warn(line)


def describe_training(runner: Runner) -> str:
    """Describes in one line what a run trains on, with numbers to check."""
    dataset = runner.train_dataloader.dataset
    described = []
    for name, part in getattr(dataset, 'domains', {None: dataset}).items():
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
