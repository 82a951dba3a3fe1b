"""Makes a resumed training go on as if it had never been interrupted."""

import random
import warnings
from typing import Any

import numpy as np
import torch
from mmengine.dist import get_rank
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import Tensor
from torch.optim import Optimizer

from mmseg_cct.config.walk import changed_settings
from mmseg_cct.engine.checkpoints import find_resumable
from mmseg_cct.engine.foreign_config import saved_config
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_matching_weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import say, warn

from .durable_checkpoint_hook import VALIDATED, keep_to_own_best

# Settings that differ between any two runs.
_OF_ONE_RUN = ('work_dir', 'load_from', 'resume', 'experiment_name', 'launcher', 'default_hooks')
# A scheduler's state beside its options.
_PROGRESS = ('last_step', '_global_step', '_last_value', 'base_values', 'verbose')


@HOOKS.register_module()
class ResumeHook(Hook):
    """Makes a resumed training go on as if it had never been interrupted.

    - It goes on from the newest whole checkpoint in the work directory, unless `load_from` names
      one.
    - A checkpoint that does not fit the model ends the run; mmengine would leave weights random.
    - Options of the optimizer and the schedules (learning rate, momentum, weight decay, ends) are
      those of the config, which may have changed; mmengine restores the old ones with the state.
      Differences from the checkpoint's config are logged.
    - With gradient accumulation it goes on from the last step, since later gradients are lost.
      BatchNorm's statistics have already averaged the iterations after that step, and average them
      twice; a teacher takes them over. A training by epochs goes on with the next epoch.
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
            warn(
                f'--resume: no whole checkpoint in {runner.work_dir}, training starts at iteration '
                '0'
            )
            runner._resume = False

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Checks the checkpoint, and replaces its settings by those of the config."""
        if not runner._resume:
            return
        # What does not fit ends the run before anything is restored.
        model, name = unwrap_model(runner.model), runner._load_from
        require_matching_weights(model, checkpoint, name, training=True)
        _require_same_optimizer(runner, checkpoint, name)
        _require_iterations_left(runner, checkpoint, name)
        # mmengine restores the checkpoint after this hook: change there what shall not come back.
        earlier = _earlier_settings(checkpoint, name)
        _log_differences(earlier, runner.cfg.to_dict())
        _go_back_to_a_step(runner, checkpoint, earlier)
        _follow_new_settings(runner, checkpoint)
        # What no checkpoint holds is told.
        if not any(isinstance(hook, IterationSeedHook) for hook in runner.hooks):
            warn(
                '--resume: custom_hooks has no IterationSeedHook, so perturbations and dropout '
                'differ from those of the uninterrupted training'
            )
        if any(isinstance(hook, EarlyStoppingHook) for hook in runner.hooks):
            warn('--resume: EarlyStoppingHook counts its patience anew, as no checkpoint keeps it')

    def before_train(self, runner: Runner) -> None:
        """Fits the optimizer's state to the weights, and runs a validation that was due."""
        if not runner._resume:
            return
        if isinstance(runner.optim_wrapper, OptimWrapper):
            _lay_out_as_the_weights(runner.optim_wrapper.optimizer)
        # The best checkpoint may lie in the folder that this run was resumed from.
        for hook in runner.hooks:
            if isinstance(hook, CheckpointHook):
                keep_to_own_best(hook)
        loop = runner.train_loop
        if not isinstance(loop, IterBasedTrainLoop) or runner.val_loop is None:
            return
        loop._decide_current_val_interval()
        due = loop.iter % loop.val_interval == 0 or loop.iter == loop.max_iters
        is_known = runner.message_hub.runtime_info.get(VALIDATED) == loop.iter
        if loop.iter >= max(loop.val_begin, 1) and due and not is_known:
            say(
                f'--resume: validating at iteration {loop.iter}: the checkpoint is written before '
                'the validation, which may have been cut short'
            )
            runner.val_loop.run()


def _require_same_optimizer(runner: Runner, checkpoint: dict[str, Any], name: str) -> None:
    wrapper = runner.optim_wrapper
    if not isinstance(wrapper, OptimWrapper):
        return
    found = checkpoint['optimizer'].get('param_groups', [])
    expected = wrapper.optimizer.param_groups
    sizes = [[len(group['params']) for group in groups] for groups in (found, expected)]
    known = {key for group in found for key in group}
    # a flag that a later torch added keeps its default
    unknown = {
        key
        for group in expected
        for key, value in group.items()
        if key not in known and not (value is None or isinstance(value, bool))
    }
    if sizes[0] != sizes[1] or unknown - {'initial_lr', 'initial_momentum'}:
        found = f'{name} holds the state of another optimizer or model than optim_wrapper makes'
        expected = f'the same (to start from its weights alone: --cfg-options load_from={name})'
        raise UserError('--resume', found, expected)


def _require_iterations_left(runner: Runner, checkpoint: dict[str, Any], name: str) -> None:
    loop, iteration = runner.train_loop, checkpoint['meta'].get('iter', 0)
    if isinstance(loop, IterBasedTrainLoop) and iteration > loop.max_iters:
        found = f'{name} is of iteration {iteration}'
        expected = f'{iteration} or more'
        raise UserError(f'train_cfg.max_iters={loop.max_iters}', found, expected)


def _earlier_settings(checkpoint: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        config = saved_config(checkpoint, name, is_built=False)
    except UserError:  # only the log of the differences needs them
        config = None
    # a seed that mmengine drew is in no config; this run has taken it over
    drawn = {'randomness': {'seed': checkpoint['meta'].get('seed')}}
    return {**drawn, **config.to_dict()} if config else {}


def _log_differences(earlier: dict[str, Any], now: dict[str, Any]) -> None:
    """Logs the settings that a resumed training changes."""
    changed = [
        f'{key} {before} -> {after}'
        for key, before, after in changed_settings(earlier, now)
        if earlier and key.split('.')[0] not in _OF_ONE_RUN
    ]
    if changed:
        more = f' and {len(changed) - 8} more' if len(changed) > 8 else ''
        say(f'--resume: differs from the checkpoint: {", ".join(changed[:8])}{more}')


def _go_back_to_a_step(runner: Runner, checkpoint: dict[str, Any], earlier: dict[str, Any]) -> None:
    """Goes back to the last step, so that gradients that were lost are accumulated again.

    The weights do not change between two steps, so the checkpoint has those of the last step.
    BatchNorm's statistics change in every iteration, and are not taken back.
    """
    if not isinstance(runner.train_loop, IterBasedTrainLoop):
        return
    meta, wrapper = checkpoint['meta'], runner.optim_wrapper
    rest = meta['iter'] % getattr(wrapper, '_accumulative_counts', 1)
    # the last iteration of a training steps in any case
    if not rest or meta['iter'] == (earlier.get('train_cfg') or {}).get('max_iters'):
        return
    say(
        f'--resume: from iteration {meta["iter"] - rest}, where the optimizer stepped last; '
        f'the gradients of {rest} iterations after it were lost. Running statistics count these '
        'twice; a default_hooks.checkpoint.interval in multiples of '
        'optim_wrapper.accumulative_counts avoids it'
    )
    meta['iter'] -= rest
    schedulers = runner.param_schedulers
    if isinstance(schedulers, list) and not any(scheduler.by_epoch for scheduler in schedulers):
        _run_schedules(runner, checkpoint)


def _follow_new_settings(runner: Runner, checkpoint: dict[str, Any]) -> None:
    """Sets the options of optimizer and schedules to those of the config; keeps their state."""
    wrapper = runner.optim_wrapper
    if not isinstance(wrapper, OptimWrapper):
        return
    schedulers = runner.param_schedulers if isinstance(runner.param_schedulers, list) else []
    scheduled = {scheduler.param_name for scheduler in schedulers}
    rates_changed = False
    for group, current in zip(_saved_groups(checkpoint), wrapper.param_groups):
        for key in group.keys() & current.keys() - {'params', *scheduled}:
            rates_changed |= key.startswith('initial_') and group[key] != current[key]
            group[key] = current[key]
    if not (rates_changed or _schedules_changed(schedulers, checkpoint.get('param_schedulers'))):
        return
    if any(scheduler.by_epoch for scheduler in schedulers):
        warn(
            '--resume: learning rates and schedules go on as in the checkpoint, since they step by '
            'epoch; the config has others'
        )
        return
    _run_schedules(runner, checkpoint)
    say('--resume: learning rates follow the schedules of the config')


def _lay_out_as_the_weights(optimizer: Optimizer) -> None:
    """Gives Adam's moments the strides of their weights, which a fused step takes for granted.

    The loaded ones have the layout of the run that wrote them, channels-last or not.
    """
    for weight, state in optimizer.state.items():
        for name, value in state.items():
            is_like_it = isinstance(value, Tensor) and value.shape == weight.shape
            if is_like_it and value.stride() != weight.stride():
                state[name] = torch.empty_like(weight, dtype=value.dtype).copy_(value)


def _saved_groups(checkpoint: dict[str, Any]) -> list[dict[str, Any]]:
    # With several groups, mmengine also keeps base settings, which belong to no group but are
    # stepped by the schedules too.
    optimizer = checkpoint['optimizer']
    return [*optimizer['param_groups'], *filter(None, [optimizer.get('base_param_settings')])]


def _schedules_changed(schedulers: list[Any], saved: Any) -> bool:
    if not isinstance(saved, list) or len(saved) != len(schedulers):
        return bool(schedulers)
    return any(
        value != state.get(key, value)
        for scheduler, state in zip(schedulers, saved)
        for key, value in scheduler.state_dict().items()
        if key not in _PROGRESS
    )


def _run_schedules(runner: Runner, checkpoint: dict[str, Any]) -> None:
    """Steps fresh schedules up to the resumed iteration: each value depends on the one before."""
    schedulers = runner.param_schedulers
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about the optimizer, which has not stepped in between
        start = max((scheduler.last_step for scheduler in schedulers), default=0)
        for _ in range(checkpoint['meta']['iter'] - start):
            for scheduler in schedulers:
                scheduler.step()
    checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in schedulers]
    for group, current in zip(_saved_groups(checkpoint), runner.optim_wrapper.param_groups):
        group.update({key: current[key] for key in ('lr', 'momentum') if key in group})


@HOOKS.register_module()
class IterationSeedHook(Hook):
    """Seeds the random generators of the process before every training iteration.

    A resumed run then draws the same perturbations and dropout masks as an uninterrupted one. The
    run's seed is `randomness.seed`, or the one that the runner has drawn; each rank is seeded
    differently. `SemiSegDataset` seeds the data augmentation.
    """

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        """Seeds `random`, NumPy and torch."""
        sequence = np.random.SeedSequence([runner.seed, runner.iter, get_rank()])
        seed = int(sequence.generate_state(1)[0])
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
