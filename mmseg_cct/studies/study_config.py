"""The config that all runs of a study have in common."""

from collections.abc import Mapping
from typing import Any

from mmengine.config import Config
from mmengine.hooks import EarlyStoppingHook
from mmengine.registry import HOOKS, DefaultScope
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

from mmseg_cct.config.compose import training_sets
from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import at, listed
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.preflight.components import is_a
from mmseg_cct.preflight.values import hooks_of, training_problems

# Settings that a study changes or needs, and what is expected there.
_LABELED = 'train_dataloader.dataset.labeled'
_EXPECTED = {
    _LABELED: 'a SemiSegDataset, whose labelled images a study chooses',
    'train_cfg.max_iters': 'a training that counts iterations',
    'optim_wrapper': 'a config for training',
    'test_dataloader': 'images to test on',
    'default_hooks.checkpoint': 'a CheckpointHook, whose last checkpoint a study tests',
}


def study_config(base: str, options: dict[str, Any]) -> Config:
    """Loads the config of a study, and checks it before any run is prepared."""
    config = load_config(base, options)
    has_labels = all(part.get('labeled') is not None for part in training_sets(config))
    raise_problems(
        Problem(base, f'no {key}', expected)
        for key, expected in _EXPECTED.items()
        if (not has_labels if key == _LABELED else at(config, key) is None)
    )
    for key, hook in hooks_of(config):
        if is_a(hook, HOOKS, EarlyStoppingHook):
            found = f'{hook.type} ends runs at different lengths'
            raise UserError(f'{base}: {key}', found, 'none: a study compares equal ones')
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        raise_problems(training_problems(config))
        if not any(map(_may_give_miou, listed(config.test_evaluator))):
            raise UserError(
                base,
                'test_evaluator: gives no mIoU, which a study collects',
                "an IoUMetric with 'mIoU' among its iou_metrics, without prefix and format_only",
            )
    return config


def require_one_domain(config: Config, base: str) -> None:
    """Rejects a config of several domains, for studies that choose images of one."""
    if at(config, _LABELED) is None:
        found = f'no {_LABELED}, but several domains'
        raise UserError(base, found, 'one data set; tools/ablation.py takes several')


def keep_last_checkpoint(config: Config) -> None:
    """Keeps only the last checkpoint, where a study looks for it."""
    config.default_hooks.checkpoint.update(max_keep_ckpts=1, save_best=None)
    for key in ('save_last', 'out_dir', 'filename_tmpl'):  # by default it is saved, in work_dir
        config.default_hooks.checkpoint.pop(key, None)


def _may_give_miou(settings: Mapping[str, Any]) -> bool:
    kind = METRICS.get(settings['type']) if isinstance(settings['type'], str) else settings['type']
    if not issubclass(kind, IoUMetric):
        return not kind.__module__.startswith('mmseg.')  # a custom metric may
    named = 'mIoU' in settings.get('iou_metrics', ['mIoU'])
    return named and not settings.get('prefix') and not settings.get('format_only')
