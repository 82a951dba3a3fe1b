"""Atomic checkpoints: after a kill, the old file or the new one is whole."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend
from mmengine.hooks import CheckpointHook
from mmengine.registry import HOOKS
from mmengine.runner import BaseLoop, Runner

from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_finite_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import remove_parts
from mmseg_cct.utils.ranges import require_arguments_of

# The key in a checkpoint of the iteration that was validated last. mmengine would print one that
# begins with `val` in each line of a validation.
VALIDATED = 'last_validation'


@HOOKS.register_module()
class DurableCheckpointHook(CheckpointHook):
    """A `CheckpointHook` that always leaves a resumable checkpoint, even if killed.

    mmengine removes the oldest checkpoint, and the best one, before it writes the new one, and
    writes into the file itself: a kill at that moment loses the checkpoint. Here each file is
    written completely or not at all (`AtomicLocalBackend`), and others are removed afterwards;
    weights that are NaN or infinite end the training and are never saved. A training that is
    resumed in another folder leaves the best checkpoint in the first folder alone. Of the IoU, F1
    and recall of a class, as in `save_best='IoU.crack'`, the greatest is the best.

    Args:
        interval: Iterations (with `by_epoch`, epochs) between checkpoints; None for the interval
            between validations.
        **kwargs: Other arguments of `CheckpointHook`, but no `out_dir`: checkpoints lie in the work
            directory, which a run holds alone.

    Raises:
        UserError: An argument is unknown, or the weights to save are not finite.
    """

    _default_greater_keys = [*CheckpointHook._default_greater_keys, 'IoU', 'F1', 'recall']
    file_backend: Any = None  # until a training begins
    interval: Any

    def __init__(self, interval: int | None = None, **kwargs: Any) -> None:
        require_arguments_of(CheckpointHook, kwargs, type(self).__name__)
        if kwargs.get('out_dir') is not None:
            key = f'{type(self).__name__}.out_dir={kwargs["out_dir"]!r}'
            raise UserError(key, 'checkpoints lie in the work directory', '--work-dir')
        kwargs['backend_args'] = kwargs.get('backend_args') or dict(backend='atomic_local')
        super().__init__(**kwargs)
        self.interval = interval
        self._outdated: list[str] = []

    def before_train(self, runner: Runner) -> None:
        """Prepares the folder, removes unfinished files from it, and defers other removals."""
        super().before_train(runner)
        if self.interval is None:
            self.interval = runner.train_loop.val_interval
        if isinstance(self.file_backend, LocalBackend) and is_main_process():
            remove_parts(self.out_dir)
        # mmengine removes before it writes: its backend, which no other hook has, only takes notes
        self._remove = self.file_backend.remove
        self.file_backend.remove = self._outdated.append
        # The path of the best comes from the resumed checkpoint: it may be in another folder, or of
        # any other file. Only a best checkpoint in the own folder may be removed.
        for paths, key in self._best():
            name = Path(str(paths[key])).name
            is_best = re.fullmatch(r'best_.+\d\.pth', name)
            paths[key] = self.file_backend.join_path(self.out_dir, name) if is_best else None

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float]) -> None:
        """Saves the best checkpoint."""
        if isinstance(runner._train_loop, BaseLoop):
            runner.message_hub.update_info(VALIDATED, runner.iter)
        super().after_val_epoch(runner, metrics)

    def _save_checkpoint_with_step(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self._save(runner, super()._save_checkpoint_with_step, *args, **kwargs)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict[str, float]) -> None:
        self._save(runner, super()._save_best_checkpoint, metrics)

    def _save(self, runner: Runner, write: Callable, *args: Any, **kwargs: Any) -> None:
        """Lets mmengine write finite weights, and removes then what it would remove before."""
        # a step may overflow although the loss before it was finite
        state = unwrap_model(runner.model).state_dict()
        require_finite_weights(state, f'iteration {runner.iter}: not saved')
        write(runner, *args, **kwargs)
        # A repeated validation may have written the best checkpoint under the same name as before,
        # and a resumed training that goes back to an optimizer's step, the newest.
        kept = [self.last_ckpt, *(paths[key] for paths, key in self._best())]
        for path in set(self._outdated) - set(kept):
            self._remove(path)
        self._outdated.clear()

    def _best(self) -> list[tuple[dict[str, Any], str]]:
        """Lists where mmengine keeps the path of the best checkpoint, or of one for each metric."""
        by_metric = getattr(self, 'best_ckpt_path_dict', {})
        entries = [(self.__dict__, 'best_ckpt_path'), *((by_metric, key) for key in by_metric)]
        return [(paths, key) for paths, key in entries if paths.get(key)]
