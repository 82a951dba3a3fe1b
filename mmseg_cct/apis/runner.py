"""Builds a Runner from a config and runs it."""

import gc
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch.distributed
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmseg_cct.checks.failures import config_errors_as_one_line
from mmseg_cct.errors import UserError

# A folder of log and scalars, by date and time, that every run makes in its work directory.
_OF_A_RUN = f'{"[0-9]" * 8}_{"[0-9]" * 6}'


def require_files_kept(config: Config, written: Iterable[str] = ()) -> None:
    """Checks that a run overwrites no file that no earlier run wrote, such as its own config.

    The runner dumps its config; `written` are patterns of the other names that it may write.
    """
    folder, name = Path(config.work_dir), Path(config.filename).name
    dump, expected = folder / name, 'expected another folder as the work directory'
    if dump.is_symlink() or (
        dump.exists() and os.path.exists(config.filename) and dump.samefile(config.filename)
    ):
        raise UserError(
            f'{folder}: holds {dump.resolve()}, which the run would overwrite with all settings '
            f'written out; {expected}'
        )
    if any(folder.glob(_OF_A_RUN)):
        return
    for pattern in (glob.escape(name), *written):
        for path in folder.glob(pattern):
            raise UserError(f'{path}: no run wrote it, and this one might replace it; {expected}')


def run(config: Config, what: str) -> Any:
    """Builds a runner and calls its method `what`, such as `train`, whose result it returns."""
    # mmengine's own start of a process group selects a CUDA device; it keeps a group that is there.
    own_group = config.launcher != 'none' and get_device() == 'cpu'
    if own_group:
        torch.distributed.init_process_group('gloo')
    first = _FirstBatch()
    try:
        runner = RUNNERS.build(config) if 'runner_type' in config else Runner.from_cfg(config)
        runner.register_hook(first, 'LOWEST')
        result = getattr(runner, what)()
    except Exception:
        if not first.passed:
            with config_errors_as_one_line(config, first.failure):
                raise
        raise
    if own_group:  # after an error the process ends, and its message needs the group's store
        # The distributed model holds the group. Were it left to the interpreter's end, a thread of
        # the group that lets go of a tensor then would abort the process (pytorch#190489).
        # The loaders go first: collected in a circle with their queues, they could not tell their
        # workers to end, and would wait 5 s for each.
        vars(runner).clear()
        del runner
        gc.collect()
        torch.distributed.destroy_process_group()
    return result


class _FirstBatch(Hook):
    """Tells mistakes of a config, which the first batch finds, from what goes wrong later."""

    def __init__(self) -> None:
        self.failure = 'cannot be built'
        self.passed = False

    def before_run(self, runner: Runner) -> None:
        self.failure = 'fails at its first batch'

    def before_test(self, runner: Runner) -> None:
        self.failure = 'fails at its first batch'

    def after_train_iter(self, *_: Any, **__: Any) -> None:
        self.passed = True

    def after_test_iter(self, *_: Any, **__: Any) -> None:
        self.passed = True
