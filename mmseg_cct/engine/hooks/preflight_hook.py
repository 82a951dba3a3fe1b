"""Validates data, classes and checkpoint before a run."""

import logging
from collections.abc import Sequence
from typing import Any

from mmengine.dataset import BaseDataset
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import BaseTTAModel
from mmengine.registry import HOOKS
from mmengine.runner import EpochBasedTrainLoop, Runner
from mmseg.datasets import BaseSegDataset
from mmseg.models import SegTTAModel

from mmseg_cct.datasets.checks import check_evaluation_data, leaf_datasets
from mmseg_cct.datasets.evaluation_set import build_evaluation_set
from mmseg_cct.datasets.naming_pipeline import name_images_in_errors
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.engine.checkpoints import require_initial_weights, require_matching_weights
from mmseg_cct.engine.class_checks import (
    require_fitting_banks,
    require_heads_ignore,
    require_ignored,
    require_num_classes,
    require_same_order,
)
from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.errors import UserError

from .prediction_files import require_own_files
from .rehearsal import iou_metrics, rehearse_validation, require_iou_metrics


@HOOKS.register_module()
class PreflightHook(Hook):
    """Checks the data, the number of classes and the checkpoint that is tested.

    A mask that is missing in the validation set would otherwise end the run at its first
    validation, an image of a classifier's training when it is drawn, and a checkpoint of another
    number of classes would be tested with random weights. The first validation batch goes through
    pipeline, model and metrics before the training. `tools/train.py` and `tools/test.py` add it.

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
        """Checks the data and, with a warning only, the test set; says what trains."""
        model, trained = _model(runner), runner.train_dataloader.dataset
        require_num_classes(model, _meta(trained), 'train_dataloader.dataset')
        require_fitting_banks(model, _meta(trained))
        require_heads_ignore(model, trained, 'train_dataloader.dataset')
        if all(map(_has_images_alone, leaf_datasets(trained))):
            check_evaluation_data(trained, 'train_dataloader.dataset')
        if runner.val_loop is not None:
            validated = runner.val_dataloader.dataset
            require_num_classes(model, _meta(validated), 'val_dataloader.dataset')
            require_same_order(_meta(trained), _meta(validated), 'val_dataloader.dataset')
            metrics = getattr(getattr(runner.val_loop, 'evaluator', None), 'metrics', ())
            _require_metrics_ignore(metrics, validated, 'val')
            check_evaluation_data(validated, 'val_dataloader.dataset')
            name_images_in_errors(validated, 'val_dataloader.dataset')
            rehearse_validation(runner)
        if is_main_process():
            _warn_of_test_set(runner.cfg)
            print_log(describe_training(runner), logger='current')

    def before_test(self, runner: Runner) -> None:
        """Checks the test set."""
        _require_averaged_scores(unwrap_model(runner.model))
        dataset = runner.test_dataloader.dataset
        metrics = getattr(runner.test_evaluator, 'metrics', ())
        require_iou_metrics(metrics, 'test_evaluator')
        require_own_files(metrics, dataset)
        require_num_classes(_model(runner), _meta(dataset), 'test_dataloader.dataset')
        _require_metrics_ignore(metrics, dataset, 'test')
        check_evaluation_data(dataset, 'test_dataloader.dataset')
        name_images_in_errors(dataset, 'test_dataloader.dataset')

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint that is tested, or that a training starts from or goes on from."""
        data = runner.train_dataloader if self.checkpoint is None else runner.test_dataloader
        saved = (checkpoint.get('meta') or {}).get('dataset_meta')
        require_same_order(_meta(data.dataset), saved, 'the checkpoint')
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


def _require_averaged_scores(model: Any) -> None:
    if isinstance(model, SegTTAModel) and model.module.out_channels == 1:
        raise UserError(
            '--tta: model.decode_head.out_channels=1, of which MMSeg takes the sigmoid twice; '
            'expected no --tta, or a model with an output for each class'
        )


def _require_metrics_ignore(metrics: Sequence[Any], dataset: Any, split: str) -> None:
    for metric in iou_metrics(metrics):
        require_ignored(dataset, f'{split}_dataloader.dataset', metric, f'{split}_evaluator')


def _has_images_alone(dataset: Any) -> bool:
    # A `SemiSegDataset` has checked its own, and a large set's masks would take minutes to decode.
    return isinstance(dataset, BaseDataset) and not isinstance(dataset, BaseSegDataset)


def _meta(dataset: Any) -> dict:
    return getattr(dataset, 'metainfo', None) or {}


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
