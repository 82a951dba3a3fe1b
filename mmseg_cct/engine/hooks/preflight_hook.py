"""Validates evaluation data, classes and checkpoint before a run."""

import logging
from collections.abc import Iterator
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS
from mmengine.runner import EpochBasedTrainLoop, Runner

from mmseg_cct.datasets.checks import check_evaluation_data
from mmseg_cct.datasets.evaluation_set import build_evaluation_set
from mmseg_cct.datasets.naming_pipeline import name_images_in_errors
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.engine.checkpoints import require_initial_weights, require_matching_weights
from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.errors import UserError
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.models.segmentors.multi_domain_cct import domain_named_in_errors

from .prediction_files import require_own_files
from .rehearsal import rehearse_validation, require_iou_metrics


@HOOKS.register_module()
class PreflightHook(Hook):
    """Checks the evaluation data, the number of classes and the checkpoint that is tested.

    A mask that is missing in the validation set would otherwise end the run at its first
    validation, and a checkpoint of another number of classes would be tested with random weights.
    The first validation batch goes through pipeline, model and metrics before the training.
    `tools/train.py` and `tools/test.py` add it.

    Args:
        checkpoint: The checkpoint that is tested.
        load_from: The checkpoint whose weights a training starts from.
    """

    # After mmengine's own hooks have filled in what the run knows.
    priority = 'HIGH'

    def __init__(self, checkpoint: str | None = None, load_from: str | None = None) -> None:
        self.checkpoint = checkpoint
        self.load_from = load_from

    def before_train(self, runner: Runner) -> None:
        """Checks the validation set and, with a warning only, the test set; says what trains."""
        model, trained = _model(runner), runner.train_dataloader.dataset
        _require_classes(model, trained, 'train_dataloader.dataset')
        _require_fitting_banks(model, trained)
        if runner.val_loop is not None:
            validated = runner.val_dataloader.dataset
            _require_classes(model, validated, 'val_dataloader.dataset')
            _require_order(_meta(trained), _meta(validated), 'val_dataloader.dataset')
            check_evaluation_data(validated, 'val_dataloader.dataset')
            name_images_in_errors(validated, 'val_dataloader.dataset')
            rehearse_validation(runner)
        if is_main_process():
            _warn_of_test_set(runner.cfg)
            print_log(describe_training(runner), logger='current')

    def before_test(self, runner: Runner) -> None:
        """Checks the test set."""
        dataset = runner.test_dataloader.dataset
        metrics = getattr(runner.test_evaluator, 'metrics', ())
        require_iou_metrics(metrics, 'test_evaluator')
        require_own_files(metrics, dataset)
        _require_classes(_model(runner), dataset, 'test_dataloader.dataset')
        check_evaluation_data(dataset, 'test_dataloader.dataset')
        name_images_in_errors(dataset, 'test_dataloader.dataset')

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint that is tested, or that a training starts from or goes on from."""
        data = runner.train_dataloader if self.checkpoint is None else runner.test_dataloader
        saved = (checkpoint.get('meta') or {}).get('dataset_meta')
        _require_order(_meta(data.dataset), saved, 'the checkpoint')
        if self.checkpoint is not None:
            # Published checkpoints lack the auxiliary decoders, which testing never runs.
            require_matching_weights(_model(runner), checkpoint, self.checkpoint, training=False)
        if self.load_from is not None:
            require_initial_weights(_model(runner), checkpoint, self.load_from)


def describe_training(runner: Runner) -> str:
    """Says in a line what a run trains on, with numbers to check.

    Args:
        runner: The runner, before its training.

    Returns:
        The line.
    """
    dataset, validation = runner.train_dataloader.dataset, runner.val_loop
    domains = getattr(dataset, 'domains', None)
    if domains is None:
        data = _describe_set(dataset)
    else:
        data = '; '.join(f'{name}: {_describe_set(part)}' for name, part in domains.items())
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    length = f'{runner.max_epochs} epochs' if by_epoch else f'{runner.max_iters} iterations'
    line = f'Training on {data}; {length}, batch size {runner.train_dataloader.batch_size}'
    if validation is not None:
        line += f'; validating on {len(validation.dataloader.dataset)} images'
    return line


def _describe_set(dataset: Any) -> str:
    classes = _meta(dataset).get('classes') or ()
    names = f', {len(classes)} classes ({", ".join(map(str, classes))})' if classes else ''
    if not isinstance(dataset, SemiSegDataset):
        return f'{len(dataset)} images{names}'
    labeled = f'{len(dataset.labeled)} labelled'
    if dataset.unlabeled is None:
        return f'{labeled} images{names}'
    return f'{labeled} and {len(dataset.unlabeled)} unlabelled images{names}'


def _model(runner: Runner) -> Any:
    model = unwrap_model(runner.model)
    return model.module if isinstance(model, BaseTTAModel) else model


def _require_classes(model: Any, dataset: Any, key: str) -> None:
    for domain, part, names in _by_domain(model, dataset):
        num_classes = getattr(getattr(part, 'decode_head', None), 'num_classes', None)
        # A binary head may have one output for both of its classes.
        if num_classes is None or not names or num_classes in (1, len(names)):
            continue
        shown = ', '.join(map(str, names[:4])) + (', ...' if len(names) > 4 else '')
        place = '' if domain is None else f'.domains.{domain}'
        raise UserError(
            f'model{place}.decode_head.num_classes={num_classes}: expected {len(names)}, the '
            f'classes of {key}{place} ({shown})'
        )


def _require_fitting_banks(model: Any, dataset: Any) -> None:
    """Checks all auxiliary decoders: those of a second domain have their turn later."""
    for domain, part, names in _by_domain(model, dataset):
        bank = getattr(part, 'auxiliary_head', None)
        if isinstance(bank, PerturbedDecoderBank) and names:
            with domain_named_in_errors(domain):
                bank.check_classes(names, part.out_channels)


def _by_domain(model: Any, dataset: Any) -> Iterator[tuple[str | None, Any, Any]]:
    """Yields name, model and class names of each domain; `None` is the name of the only one."""
    meta = _meta(dataset)
    if 'domains' not in meta:
        yield None, model, meta.get('classes')
        return
    for name, part in getattr(model, 'domains', {}).items():
        yield name, part, meta['domains'].get(name, {}).get('classes')


def _meta(dataset: Any) -> dict:
    return getattr(dataset, 'metainfo', None) or {}


def _require_order(meta: Any, other: Any, name: str) -> None:
    """Checks that ids mean the same in two sets: their class names are in one order."""
    meta, other = meta or {}, other or {}
    for domain, part in (meta.get('domains') or {}).items():
        _require_order(part, (other.get('domains') or {}).get(domain), f'{name}, domain {domain}')
    classes, others = (tuple(m.get('classes') or ()) for m in (meta, other))
    if classes != others and set(classes) == set(others):
        first = next(index for index in range(len(classes)) if classes[index] != others[index])
        raise UserError(
            f'{name}: class {first} is {others[first]}, in the data set {classes[first]}; expected '
            f'the same order of the classes ({", ".join(classes[:8])})'
        )


def _warn_of_test_set(config: Any) -> None:
    """Says what tools/test.py will stop at; a training does without a test set."""
    test = (config.get('test_dataloader') or {}).get('dataset')
    if not isinstance(test, dict) or test == (config.get('val_dataloader') or {}).get('dataset'):
        return
    try:
        build_evaluation_set(test, 'test_dataloader.dataset')
    except UserError as error:
        print_log(
            f'the training goes on, but tools/test.py will stop: {error}',
            logger='current',
            level=logging.WARNING,
        )
