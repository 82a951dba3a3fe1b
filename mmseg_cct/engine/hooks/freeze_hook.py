"""No gradients for frozen weights."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.errors import UserError


@HOOKS.register_module()
class FreezeHook(Hook):
    """Computes no gradients for parameters whose learning rate is 0.

    ``paramwise_cfg=dict(custom_keys={'backbone.layer1': dict(lr_mult=0.0)})`` freezes weights, but
    their gradients are computed all the same. Without them the same training takes less time and
    memory; the earlier the frozen layers, the more it saves. MMSeg's `frozen_stages` does more: it
    also normalises these layers by their running statistics.

    A distributed training still computes them, since DDP waits for every gradient; there they also
    count in the norm of `clip_grad`.
    """

    def before_train(self, runner: Runner) -> None:
        """Takes the parameters out of the graph; no schedule may raise their rate above 0."""
        groups = runner.optim_wrapper.param_groups
        # a warm-up may have set `lr` itself to another value
        frozen_groups = [group for group in groups if group.get('initial_lr', group['lr']) == 0]
        if not (frozen := [parameter for group in frozen_groups for parameter in group['params']]):
            return
        for scheduler in runner.param_schedulers or ():
            if getattr(scheduler, 'eta_min', 0):
                problem = f'would lift the rate of {len(frozen)} weights that lr_mult=0 freezes'
                raise UserError(f'param_scheduler.eta_min={scheduler.eta_min}', problem, '0')
        if is_model_wrapper(runner.model):
            return
        for parameter in frozen:
            parameter.requires_grad_(False)
        # mmengine logs the rate of the first group, which may be a frozen one
        runner.logger.info(
            f'{len(frozen)} weights are frozen by a learning rate of 0; where "lr" in the log '
            'is 0 it is theirs, and "base_lr" is that of the training'
        )
