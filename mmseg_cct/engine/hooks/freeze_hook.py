"""Frozen parameters without gradients."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import Runner


@HOOKS.register_module()
class FreezeHook(Hook):
    """Computes no gradients for parameters whose learning rate is 0.

    ``paramwise_cfg=dict(custom_keys={'backbone.layer1': dict(lr_mult=0.0)})`` freezes weights, but
    their gradients are computed all the same. Without them the same training takes less time and
    memory, the more so the earlier the frozen layers. MMSeg's `frozen_stages` is another thing: it
    also normalises these layers by their running statistics.

    A distributed training computes them as before, since DDP waits for every gradient.
    """

    def before_train(self, runner: Runner) -> None:
        """Takes the parameters out of the graph."""
        if is_model_wrapper(runner.model):
            return
        frozen = [
            parameter
            for group in runner.optim_wrapper.param_groups
            # a warm-up may have set `lr` itself to another value
            if group.get('initial_lr', group['lr']) == 0
            for parameter in group['params']
        ]
        for parameter in frozen:
            parameter.requires_grad_(False)
        if frozen:
            # mmengine logs the rate of the first group, which may be one of these
            runner.logger.info(
                f'{len(frozen)} weights are frozen by a learning rate of 0; where "lr" in the log '
                'is 0 it is theirs, and "base_lr" is that of the training'
            )
