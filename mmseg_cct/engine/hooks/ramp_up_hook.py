"""Ramps of loss weights and thresholds.

Every curve maps the iteration t and the ramp's length T to [0, 1]. All but `log` are exactly 1 at
and after T; `log` is 1 - e⁻⁵ at T and goes on to 1, as in the paper's equation for η (supplement,
"Ramp-up functions").
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn

from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.utils.ranges import in_unit, ranges

Schedule = Callable[[float, float], float]


def linear(t: float, length: float) -> float:
    """t/T, the share of the ramp that has passed; a ramp of length 0 is over at once."""
    return 1.0 if length <= 0 else min(max(t / length, 0.0), 1.0)


def gaussian(t: float, length: float) -> float:
    """exp(-5 (1 - t/T)²), the curve of Temporal Ensembling."""
    return math.exp(-5 * (1 - linear(t, length)) ** 2)


def exp(t: float, length: float) -> float:
    """exp(5 (t/T - 1)), the paper's curve for ω_u and ω_w."""
    return math.exp(5 * (linear(t, length) - 1))


def log(t: float, length: float) -> float:
    """1 - exp(-5 t/T), the paper's curve for η; a ramp of length 0 is over at once."""
    return 1 - math.exp(-5 * max(t, 0.0) / length) if length > 0 else 1.0


SCHEDULES: dict[str, Schedule] = dict(gaussian=gaussian, exp=exp, linear=linear, log=log)


@HOOKS.register_module()
class RampUpHook(Hook):
    """Sets a numeric attribute of the model before every iteration.

    value(t) = start + (end - start) · schedule(t, T), where t is the iteration and T the ramp's
    length. The value depends only on `runner.iter` and the config, so it is right after a resume.
    It is logged under the attribute's path. The paper's ramp of ω_u, which ends at the loss's own
    `loss_weight`::

        dict(type='RampUpHook', attribute='auxiliary_head.loss_consistency.loss_weight')

    Args:
        attribute: Dotted path from the model. `*` stands for every child:
            `domains.*.auxiliary_head.loss_consistency.loss_weight`.
        end: Value at the end of the ramp; None for the attribute's value in the built model.
        start: Value that the ramp starts from; None for the attribute's value in the built model.
        schedule: One of `SCHEDULES`.
        fraction: T as a fraction of all iterations, in [0, 1].

    Examples:
        >>> weight = 'auxiliary_head.loss_consistency.loss_weight'
        >>> hook = RampUpHook(weight, schedule='linear')
        >>> [hook.value_at(t, max_iters=1000, built=30.0) for t in (0, 50, 100, 1000)]
        [0.0, 15.0, 30.0, 30.0]
    """

    @ranges(fraction=in_unit)
    def __init__(
        self,
        attribute: str,
        end: float | None = None,
        start: float | None = 0.0,
        schedule: str = 'exp',
        fraction: float = 0.1,
    ) -> None:
        self.attribute = attribute
        self.start = start
        self.end = end
        self.schedule = SCHEDULES[schedule]
        self.fraction = fraction

    def value_at(self, iteration: int, max_iters: int, built: float) -> float:
        """Returns the value at an iteration of `max_iters`; `built` is that in the built model."""
        start = built if self.start is None else self.start
        end = built if self.end is None else self.end
        return start + (end - start) * self.schedule(iteration, self.fraction * max_iters)

    def find(self, model: nn.Module) -> list[tuple[Any, str, float]]:
        """Finds every object that has the attribute, with its name and value, a number."""
        owners: list[Any] = [model]
        *path, name = self.attribute.split('.')
        for part in path:
            parts = (o.children() if part == '*' else [getattr(o, part)] for o in owners)
            owners = list(itertools.chain.from_iterable(parts))
        return [(owner, name, getattr(owner, name)) for owner in owners]

    def before_train(self, runner: Runner) -> None:
        """Finds the attribute before training changes it, so that a typo ends the run here."""
        self._attributes = self.find(unwrap_model(runner.model))

    def before_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Sets the value in every owner, and logs that of the first."""
        t, length = runner.iter, runner.max_iters
        values = [self.value_at(t, length, built) for *_, built in self._attributes]
        for (owner, name, _), value in zip(self._attributes, values):
            setattr(owner, name, value)
        runner.message_hub.update_scalar(f'train/{self.attribute}', values[0])
