"""Restores what mmengine leaves out of a resumed training."""

import logging
import warnings
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS
from mmengine.runner import IterBasedTrainLoop, Runner

from mmseg_cct.engine.checkpoints import require_matching_weights
from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.engine.schedules import SCHEDULER_ENDS


@HOOKS.register_module()
class ResumeHook(Hook):
    """Makes a resumed training the one that was never interrupted.

    - A checkpoint that does not fit the model ends the run; mmengine would leave weights random.
    - A schedule whose end has moved follows its new curve from the resumed iteration on; mmengine
      restores the old end with the schedule's state.
    - A validation that was due at the resumed iteration is run: the checkpoint was written before
      it, so it may have been lost, and with it the best checkpoint.

    `tools/train.py --resume` adds it.

    Args:
        checkpoint: The checkpoint's name, for messages.
    """

    # After the checkpoint hook, which must be ready to save the best checkpoint.
    priority = 'LOWEST'

    def __init__(self, checkpoint: str = 'checkpoint') -> None:
        self.checkpoint = checkpoint

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint, and moves the ends of the schedules in it where they changed."""
        model = unwrap_model(runner.model)
        require_matching_weights(model, checkpoint, self.checkpoint, training=True)
        _follow_new_ends(runner, checkpoint)

    def before_train(self, runner: Runner) -> None:
        """Runs the validation that was due at the resumed iteration."""
        loop = runner.train_loop
        if not isinstance(loop, IterBasedTrainLoop) or runner.val_loop is None:
            return
        loop._decide_current_val_interval()
        due = loop.iter % loop.val_interval == 0 or loop.iter == loop.max_iters
        if loop.iter >= max(loop.val_begin, 1) and due:
            print_log(
                f'--resume: validating at iteration {loop.iter}, for the checkpoint was written '
                'before its validation',
                logger='current',
            )
            runner.val_loop.run()


def _follow_new_ends(runner: Runner, checkpoint: dict[str, Any]) -> None:
    schedulers, saved = runner.param_schedulers, checkpoint.get('param_schedulers')
    if not (isinstance(schedulers, list) and isinstance(saved, list)):
        return
    changed = [
        f'{key} {state[key]} -> {getattr(scheduler, key)}'
        for scheduler, state in zip(schedulers, saved)
        for key in SCHEDULER_ENDS
        if key in state and getattr(scheduler, key, state[key]) != state[key]
    ]
    if not changed or not isinstance(runner.optim_wrapper, OptimWrapper):
        return
    if any(scheduler.by_epoch for scheduler in schedulers):
        print_log(
            f'--resume: schedules that end elsewhere ({", ".join(changed)}) go on as in the '
            'checkpoint, for they step by epoch',
            logger='current',
            level=logging.WARNING,
        )
        return
    # Schedules are recursive: each value is made from the one before. So they are run again.
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # that the optimizer has not stepped in between
        for _ in range(checkpoint['meta']['iter']):
            for scheduler in schedulers:
                scheduler.step()
    checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in schedulers]
    optimizer = checkpoint['optimizer']
    groups = [*optimizer['param_groups'], *filter(None, [optimizer.get('base_param_settings')])]
    for group, current in zip(groups, runner.optim_wrapper.param_groups):
        group.update({key: current[key] for key in ('lr', 'momentum') if key in group})
    print_log(
        f'--resume: schedules follow their new ends ({", ".join(dict.fromkeys(changed))})',
        logger='current',
    )
