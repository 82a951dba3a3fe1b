"""Builds a Runner from a config and runs it, with a terminal without the longest messages."""

import copy
import gc
import glob
import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.runner import Runner

from mmseg_cct.config.walk import get_by_key, settings_of
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import config_errors_as_one_line
from mmseg_cct.utils.files import locked_folder, require_outside, require_own_folder

from .device import number_the_only_gpu

# The folder of log and scalars, named by date and time, that each run makes in its work directory.
_OF_A_RUN = f'{"[0-9]" * 8}_{"[0-9]" * 6}'
# Settings that say where a run writes, and the names of files there.
_PLACES = {'out_dir', 'save_dir', 'output_dir', 'outfile_prefix', 'out_file_path'}
_FILES = {'filename_tmpl', 'config_save_file', 'scalar_save_file', 'img_save_dir'}
_EVALUATORS = ('val_evaluator', 'test_evaluator')
# Lines of a message that the terminal shows: the table of 21 classes, but not the environment, the
# config or the list of hooks, which are in the log file.
_LINES = 25


def require_outputs_outside(config: Config) -> None:
    """Checks that no setting makes a run write into the folders of its data, or replace a file."""
    inputs = data_folders(config)
    require_outside(config.work_dir, inputs, '--work-dir')
    for section in ('default_hooks', 'custom_hooks', 'visualizer', *_EVALUATORS):
        for key, value in settings_of(config.get(section), section):
            name = key.rpartition('.')[2]
            if name in _PLACES and isinstance(value, str):
                require_outside(value, inputs, key)
            if name in _FILES and os.path.basename(value or '') != (value or ''):
                raise UserError(f'{key}={value}', '', 'a name without a folder')


def require_files_kept(config: Config, written: Iterable[str] = ()) -> None:
    """Checks that a run overwrites only files of earlier runs and not, say, its own config.

    The runner dumps its config; `written` are patterns of the other file names that it may write.
    """
    dump = _dump(config)
    if dump.exists() and os.path.exists(config.filename) and dump.samefile(config.filename):
        problem = f'holds {config.filename}, which the run would overwrite by its full settings'
        raise UserError(dump.parent, problem, 'another folder as the work directory')
    written = (glob.escape(dump.name), *written)
    require_own_folder(dump.parent, _OF_A_RUN, '--work-dir', written)


def run_config(config: Config, what: str, folders: Iterable[str]) -> Any:
    """Builds a runner and calls its method `what`, `train` or `test`, whose result it returns.

    For all ranks, rank 0 holds the locks of the folders that the run writes to.
    """
    with ExitStack() as held:
        if config.launcher == 'none' or os.environ.get('RANK', '0') == '0':
            for folder in folders:
                user = 'another training' if what == 'train' else 'another test'
                held.enter_context(locked_folder(folder, user))
        if _dump(config).is_symlink():  # the link is replaced, not its target
            _dump(config).unlink(missing_ok=True)
        return _run(config, what)


def _run(config: Config, what: str) -> Any:
    if config.launcher != 'none':
        number_the_only_gpu()
    resumed, start = config.get('resume', False), config.get('load_from')
    # mmengine selects a CUDA device when it starts a process group; it keeps an existing one.
    if config.launcher != 'none' and get_device() == 'cpu':
        # as mmengine does for its own group
        seconds = get_by_key(config, 'env_cfg.dist_cfg.timeout')
        options = {} if seconds is None else dict(timeout=timedelta(seconds=seconds))
        torch.distributed.init_process_group('gloo', **options)
    first = _FirstBatch()
    try:
        if resumed:  # the config that the runner dumps shall not resume this training
            config = copy.deepcopy(config)
            config.load_from, config.resume = None, False
        runner = _Runner.from_cfg(config)
        if resumed:
            runner._load_from, runner._resume = start, True
        runner.register_hook(first, 'LOWEST')
        result = getattr(runner, what)()
    except Exception:
        with nullcontext() if first.passed else config_errors_as_one_line(config, 'does not run'):
            raise
    # after an error the process ends, and its message needs the group's store
    if config.launcher != 'none':
        # The distributed model holds the group. If it lived until the interpreter ends, a thread of
        # the group that releases a tensor then would abort the process (pytorch#190489).
        # The loaders go first: if they are collected in a cycle with their queues, they cannot tell
        # their workers to end, and wait 5 s for each.
        vars(runner).clear()
        del runner
        gc.collect()
        torch.distributed.destroy_process_group()
    return result


class _Runner(Runner):
    """mmengine's runner whose terminal leaves long messages to the log file."""

    def build_logger(self, *args: Any, **kwargs: Any) -> MMLogger:
        logger = super().build_logger(*args, **kwargs)
        for handler in logger.handlers:
            if type(handler) is logging.StreamHandler:
                handler.addFilter(console_filter)
        return logger


def _dump(config: Config) -> Path:
    """Returns where the runner writes its config."""
    return Path(config.work_dir, Path(config.filename).name)


class _FirstBatch(Hook):
    """Tells mistakes of a config, which show up by the first batch, from later failures."""

    passed = False

    def after_train_iter(self, *_: Any, **__: Any) -> None:
        self.passed = True

    after_test_iter = after_train_iter


def console_filter(record: logging.LogRecord) -> bool:
    """Whether the terminal shows a message: a long one is in the log file only."""
    return record.getMessage().count('\n') <= _LINES
