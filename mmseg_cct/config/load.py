"""Loads configs and applies overrides, and how mmengine finds them."""

import copy
import inspect
import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.runner import Runner

from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.text import error_line, one_line

from .compose import forget_own_scope, remove_hooks, with_labels, with_method
from .shipped import CONFIGS, PLAIN, SCOPE, composed_name, find_config, method_in_name
from .walk import as_list, get_by_key

__all__ = ['load_config']

# Names for the last iteration in mmengine's schedulers, their arguments and their states.
SCHEDULER_ENDS = ('end', 'total_iters', 'T_max', 'total_steps')
# What models need that the maintained distributions do not have.
COMPILED_OPERATORS = 'what docs/install.md lists under "Compiled operators"'
# Top-level keys of a config that a program reads.
READ_KEYS = {
    *(inspect.signature(Runner.__init__).parameters.keys() - {'self', 'cfg'}),
    # what mmengine's runners read besides their arguments
    *('runner_type', 'model_wrapper_cfg', 'find_unused_parameters', 'sync_bn', 'compile'),
    *('activation_checkpointing', 'efficient_conv_bn_eval', 'strategy'),
    'init_weights_for_test_or_val',
    # what this package and MMSeg read
    *('test_pipeline', 'tta_model', 'tta_pipeline', 'pseudo_labels'),
    'prepared',  # what a run's steps changed, for people
}
_ABSENT = object()


def load_config(config_path: str, options: Mapping[str, Any]) -> Config:
    """Reads a config, and merges a method, a number of labels and options over it.

    Args:
        config_path: The config, as a path or the short name of a shipped one.
        options: Settings to override, by dotted key. `method` names a method or is an overlay, and
            `labels` is the number of labelled images.

    Returns:
        The config. Its `filename` is the composed name if a method or labels were given.

    Raises:
        UserError: A file is missing or does not run, or a method or an option does not fit it.

    Examples:
        >>> options = {'method': 'supervised', 'train_cfg.max_iters': 10}
        >>> config = load_config('demo/cct_shapes', options)
        >>> config.train_cfg.max_iters, config.model.type
        (10, 'EncoderDecoder')
    """
    file = find_config(config_path)
    config = read_config(file)
    options = dict(options)
    method, labels = options.pop('method', None), options.pop('labels', None)
    if method is not None:
        config = with_method(config, method)
    if labels is not None:
        config = with_labels(config, labels)
    stem = Path(file).stem
    if (name := composed_name(stem, method, labels)) != stem:
        object.__setattr__(config, '_filename', f'{name}.py')
    old_max_iters = get_by_key(config, 'train_cfg.max_iters')
    merge_options(config, file, options)
    if not any(key.split('.')[0] == 'param_scheduler' for key in options):
        move_scheduler_ends(config, old_max_iters)
    remove_hooks(config)
    return config


def chosen_method(config_path: str, options: Mapping[str, Any]) -> str:
    """Names a run's method by the options, else by the name of the config's file, else `cct`."""
    return options.get('method') or method_in_name(find_config(config_path)) or PLAIN


def read_config(config_path: str | Path) -> Config:
    """Reads a config file, and imports its `custom_imports`."""
    register_packages()
    try:
        config = Config.fromfile(config_path)
        # yapf takes half a second to format a config, at each start and for each checkpoint;
        # `fromfile` has an argument to switch it off, but for one style of config only
        object.__setattr__(config, '_format_python_code', False)
        forget_own_scope(config._cfg_dict)  # the walk also resolves lazy imports
        return config
    except (Exception, SystemExit) as error:
        # A config is Python, so it can fail in any way, and each is a mistake in the config.
        # mmengine wraps a failed import in errors that list sys.path; the first says what failed.
        cause: BaseException = error
        while isinstance(cause, ImportError) and cause.__context__ is not None:
            cause = cause.__context__
        problem = f'this config does not load: {error_line(cause)}'
        if isinstance(cause, ModuleNotFoundError):
            expected = f'{cause.name} installed, or its folder in PYTHONPATH, such as PYTHONPATH=.'
            if cause.name in ('mmcv._ext', 'mmdet'):  # of Mask2Former
                expected = COMPILED_OPERATORS
            raise UserError(config_path, problem, expected) from error
        raise UserError(config_path, problem) from error


def default_work_dir(config: Config) -> str:
    """Returns the work directory, named after the config or its composed name."""
    return os.path.join('work_dirs', Path(config.filename).stem)


def protections() -> dict[str, Any]:
    """Returns the hooks that protect a run, as `default_runtime.py` sets them."""
    shipped = read_config(CONFIGS / '_base_' / 'default_runtime.py').default_hooks
    names = ('preflight', 'findings', 'resume', 'nonfinite_loss', 'statistics')
    return {name: shipped[name] for name in names}


def with_protections(config: Config, options: Mapping[str, Any]) -> Config:
    """Adds what protects a run to a config that does not name it, as one of MMSegmentation's own.

    The option `default_hooks.preflight=None` leaves it out.
    """
    config = copy.deepcopy(config)
    config.default_hooks = hooks = config.get('default_hooks') or {}
    if 'preflight' not in hooks and 'default_hooks.preflight' not in options:
        config.default_hooks = {**protections(), **hooks}
    return config


def merge_options(config: Config, file: str, options: dict[str, Any]) -> None:
    """Merges options that have an effect over the config of a file; warns of new keys."""
    for key in options:
        section = key.split('.')[0]
        if section in config and section not in READ_KEYS:  # its value has been copied already
            problem = f'is a variable that {file} has used already: override the settings it fills'
            raise UserError(f'--cfg-options {key}', problem)
        # mmengine's word for replacing a dict
        if get_by_key(config, key, _ABSENT) is _ABSENT and not key.endswith('._delete_'):
            warn(f'--cfg-options {key}: a new key, the config has none of this name')
    try:
        config.merge_from_dict(options)
    except Exception as error:
        raise UserError('--cfg-options', f'does not fit {file}: {one_line(error)}') from error


def schedulers(config: Config) -> list[Any]:
    """Lists the settings of a config's schedulers, which may be one or a list."""
    return as_list(config.get('param_scheduler') or None)


def move_scheduler_ends(config: Config, old_max_iters: int | None) -> None:
    """Moves the end of every scheduler that ended with the training to its new end."""
    new_max_iters = get_by_key(config, 'train_cfg.max_iters')
    for scheduler in schedulers(config):
        if scheduler.get('by_epoch', True) or old_max_iters is None:
            continue
        for key in SCHEDULER_ENDS:
            if scheduler.get(key) == old_max_iters:
                scheduler[key] = new_max_iters


def register_packages() -> None:
    """Lets `_base_ = 'mmseg_cct::…'` and `'mmseg::…'`, and `mmengine.hub`, find installed configs.

    mmengine's table has MMSegmentation's old name, so mmengine would install that distribution over
    the maintained one. A second call changes nothing.
    """
    MODULE2PACKAGE[SCOPE] = SCOPE
    try:
        metadata.version('onedl-mmsegmentation')
    except metadata.PackageNotFoundError:  # the original distribution, under the name in the table
        return
    MODULE2PACKAGE['mmseg'] = 'onedl-mmsegmentation'
