"""Makes a resumed training go on as if it had never been interrupted."""

import warnings
from typing import Any

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import Tensor
from torch.optim import Optimizer

from mmseg_cct.config.walk import changed_settings, leaves
from mmseg_cct.engine.checkpoints import find_resumable
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_matching_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import say, warn
from mmseg_cct.utils.text import one_line

from .durable_checkpoint_hook import VALIDATED
from .iteration_seed_hook import IterationSeedHook

# The sections of a config whose settings a resume compares.
_TRAINED = ('model', 'optim_wrapper', 'param_scheduler', 'train_cfg', 'train_dataloader')
_COMPARED = (*_TRAINED, 'default_hooks', 'custom_hooks')


@HOOKS.register_module()
class ResumeHook(Hook):
    """Makes a resumed training go on as if it had never been interrupted.

    - It goes on from the newest whole checkpoint in the work directory, unless `load_from` names
      one. A checkpoint that does not fit the model ends the run; mmengine would leave weights
      random.
    - Optimizer and schedules take their options from the config and their state from the
      checkpoint, so a training whose `max_iters` has grown follows its new curve.
    - With gradient accumulation it goes on from the last step, since later gradients are lost.
      BatchNorm's statistics average the iterations after that step twice.
    - A line names the settings that differ from those of the checkpoint. Where the model's do, the
      log begins anew: mmengine would repeat the last value of what is no longer computed.
    - A validation that was due at the resumed iteration is run, unless the checkpoint knows it:
      mmengine writes it before the validation, and again only after a new best one.

    It does nothing in a training that is not resumed.
    """

    # After the checkpoint hook, which must be ready to save the best checkpoint.
    priority = 'LOWEST'

    def before_run(self, runner: Runner) -> None:
        """Finds the checkpoint; without one the training starts anew."""
        if not runner._resume or runner._load_from is not None:
            return
        templates = (getattr(hook, 'filename_tmpl', None) for hook in runner.hooks)
        template = next(filter(None, templates), None)
        runner._load_from = find_resumable(runner.work_dir, template)
        if runner._load_from is None:
            warn(f'--resume: no whole checkpoint in {runner.work_dir}, starting at iteration 0')
            runner._resume = False

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Keeps the settings as text."""
        checkpoint['meta']['settings'] = settings_as_text(runner.cfg)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint, and changes there what mmengine shall not restore after this."""
        if not runner._resume:
            return
        name, loop = runner._load_from, runner.train_loop
        require_matching_weights(unwrap_model(runner.model), checkpoint, name, training=True)
        if isinstance(loop, IterBasedTrainLoop):
            if (done := checkpoint['meta']['iter']) > loop.max_iters:
                raise UserError(f'train_cfg.max_iters={loop.max_iters}', f'{name} is of {done}')
            rewind_to_step(runner.optim_wrapper, checkpoint['meta'])
        if isinstance(runner.optim_wrapper, OptimWrapper):
            follow_config(runner, checkpoint)
        if 'settings' in checkpoint['meta']:
            compare_settings(runner, checkpoint)
        if not any(isinstance(hook, IterationSeedHook) for hook in runner.hooks):
            warn('--resume: without an IterationSeedHook, perturbations and dropout are drawn anew')

    def before_train(self, runner: Runner) -> None:
        """Fits the optimizer's state to the weights, and runs a validation that was due."""
        if not runner._resume:
            return
        if isinstance(runner.optim_wrapper, OptimWrapper):
            match_memory_format(runner.optim_wrapper.optimizer)
        loop = runner.train_loop
        if not isinstance(loop, IterBasedTrainLoop) or runner.val_loop is None:
            return
        loop._decide_current_val_interval()
        due = loop.iter % loop.val_interval == 0 or loop.iter == loop.max_iters
        is_known = runner.message_hub.runtime_info.get(VALIDATED) == loop.iter
        if loop.iter >= max(loop.val_begin, 1) and due and not is_known:
            say(f'--resume: validating at iteration {loop.iter}, which may have been cut short')
            runner.val_loop.run()


def settings_as_text(config: Config) -> dict[str, str]:
    """Returns the settings of the training by dotted key, without those that are None."""
    settings = leaves({name: config.get(name) for name in _COMPARED})
    return {key: str(value) for key, value in settings if value is not None}


def compare_settings(runner: Runner, checkpoint: dict[str, Any]) -> None:
    """Says which settings differ; with another model, drops the log's values from a checkpoint."""
    changed = changed_settings(checkpoint['meta']['settings'], settings_as_text(runner.cfg))
    # whether the output is a terminal
    lines = [f'{key}: {old} -> {new}' for key, old, new in changed if 'progress_bar' not in key]
    if lines:
        say(one_line(f'--resume: other settings than before: {"; ".join(lines)}', 800))
    if any(key.startswith('model.') for key, *_ in changed):
        checkpoint['message_hub']['log_scalars'].clear()


def rewind_to_step(wrapper: Any, meta: dict[str, Any]) -> None:
    """Goes back to the optimizer's last step, so that lost gradients are accumulated again.

    The weights do not change between two steps, so the checkpoint has those of the last step.
    BatchNorm's statistics change in every iteration, and are not taken back.
    """
    num_accumulated = meta['iter'] % getattr(wrapper, '_accumulative_counts', 1)
    if num_accumulated:
        meta['iter'] -= num_accumulated
        say(f'--resume: from iteration {meta["iter"]}, the last step of the optimizer')


def follow_config(runner: Runner, checkpoint: dict[str, Any]) -> None:
    """Replaces the options of optimizer and schedules in a checkpoint by the config's."""
    schedulers = runner.param_schedulers or []
    if isinstance(schedulers, dict) or any(scheduler.by_epoch for scheduler in schedulers):
        return  # they may depend on a metric, so they go on as in the checkpoint
    # Each value depends on the one before, so that fresh schedules are stepped up to here.
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about the optimizer, which has not stepped in between
        start = max((scheduler.last_step for scheduler in schedulers), default=0)
        for _ in range(checkpoint['meta']['iter'] - start):
            for scheduler in schedulers:
                scheduler.step()
    checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in schedulers]
    # With several groups, mmengine also keeps base settings, which the schedules step too.
    optimizer = checkpoint['optimizer']
    groups = [*optimizer['param_groups'], *filter(None, [optimizer.get('base_param_settings')])]
    for group, current in zip(groups, runner.optim_wrapper.param_groups):
        for key in current.keys() - {'params'}:
            # a flag that a later torch added has no number
            if key not in group and type(current[key]) in (float, tuple):
                raise UserError(f'--resume: {runner._load_from} is of another optimizer ({key})')
            group[key] = current[key]


def match_memory_format(optimizer: Optimizer) -> None:
    """Gives Adam's moments the strides of their weights, which a fused step takes for granted.

    The loaded ones have the layout of the run that wrote them, channels-last or not.
    """
    for weight, state in optimizer.state.items():
        for name, value in state.items():
            is_like_it = isinstance(value, Tensor) and value.shape == weight.shape
            if is_like_it and value.stride() != weight.stride():
                state[name] = torch.empty_like(weight, dtype=value.dtype).copy_(value)
