"""Atomic checkpoints: after a kill, the old file or the new one is whole."""

import re
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
    out_dir: Any

    def __init__(self, interval: int | None = None, **kwargs: Any) -> None:
        require_arguments_of(CheckpointHook, kwargs, type(self).__name__)
        if kwargs.get('out_dir') is not None:
            key = f'{type(self).__name__}.out_dir={kwargs["out_dir"]!r}'
            raise UserError(key, 'checkpoints lie in the work directory', '--work-dir')
        kwargs['backend_args'] = kwargs.get('backend_args') or dict(backend='atomic_local')
        super().__init__(**kwargs)
        self.interval = interval

    def before_train(self, runner: Runner) -> None:
        """Prepares the folder, and removes unfinished files from it."""
        super().before_train(runner)
        if self.interval is None:
            self.interval = runner.train_loop.val_interval
        if isinstance(self.file_backend, LocalBackend) and is_main_process():
            remove_parts(self.out_dir)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float]) -> None:
        if isinstance(runner._train_loop, BaseLoop):
            runner.message_hub.update_info(VALIDATED, runner.iter)
        super().after_val_epoch(runner, metrics)

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict) -> None:
        """Saves a checkpoint, then removes the oldest if there are too many."""
        _require_finite_model(runner)
        oldest = None
        if 0 < self.max_keep_ckpts <= len(self.keep_ckpt_ids) and self.keep_ckpt_ids[-1] != step:
            oldest = self.keep_ckpt_ids.popleft()  # mmengine would remove it before it writes
        super()._save_checkpoint_with_step(runner, step, meta)
        # a resumed training that goes back to an optimizer's step writes some again
        if oldest not in (None, step):
            self._remove(self.filename_tmpl.format(oldest))

    def _save_best_checkpoint(self, runner: Runner, metrics: dict[str, float]) -> None:
        """Saves the best checkpoint, or one by each metric, then removes the one before it."""
        _require_finite_model(runner)
        entries = self._best_entries()
        before = [paths[key] for paths, key in entries]
        for paths, key in entries:
            paths[key] = None  # mmengine would remove it before it writes
        super()._save_best_checkpoint(runner, metrics)
        for (paths, key), path in zip(entries, before):
            name = Path(str(path)).name
            if paths[key] is None:
                paths[key] = path
            # A repeated validation writes the same name again; and a path from the checkpoint that
            # was resumed may be in another folder, or of any other file.
            elif re.fullmatch(r'best_.+\d\.pth', name) and name != Path(paths[key]).name:
                self._remove(name)

    def _best_entries(self) -> list[tuple[dict[str, Any], str]]:
        """Lists where mmengine keeps the path of the best checkpoint, or of one for each metric."""
        by_metric = getattr(self, 'best_ckpt_path_dict', {})
        single = [(self.__dict__, 'best_ckpt_path')] if hasattr(self, 'best_ckpt_path') else []
        return [*single, *((by_metric, key) for key in by_metric)]

    def _remove(self, name: str) -> None:
        path = self.file_backend.join_path(self.out_dir, name)
        if is_main_process() and self.file_backend.isfile(path):
            self.file_backend.remove(path)


def _require_finite_model(runner: Runner) -> None:
    # a step may overflow although the loss before it was finite
    state = unwrap_model(runner.model).state_dict()
    require_finite_weights(state, f'iteration {runner.iter}: not saved')
