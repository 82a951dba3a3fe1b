"""Ramps of loss weights and thresholds."""

from numbers import Real
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn

from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.engine.schedules import SCHEDULES
from mmseg_cct.errors import UserError
from mmseg_cct.utils.deprecation import renamed_arguments
from mmseg_cct.utils.suggest import close_names


@HOOKS.register_module()
class RampUpHook(Hook):
    """Sets a numeric attribute of the model before every iteration.

    value(t) = start + (end - start) · schedule(t, T), t the iteration and T the ramp's length. The
    value depends on `runner.iter` alone, so it is right after a resume. It is logged under the
    attribute's path.

    Args:
        attribute: Dotted path from the model: `auxiliary_head.loss_consistency.loss_weight`, say.
            `*` stands for every child: `domains.*.auxiliary_head.loss_consistency.loss_weight`.
        end: Value at the end of the ramp.
        start: Value that the ramp starts from.
        schedule: One of `mmseg_cct.engine.schedules.SCHEDULES`.
        fraction: T as a fraction of all iterations, in [0, 1].

    Raises:
        UserError: If the schedule is unknown or the fraction out of range.
    """

    @renamed_arguments(length='fraction')
    def __init__(
        self,
        attribute: str,
        end: float,
        start: float = 0.0,
        schedule: str = 'exp',
        fraction: float = 0.1,
    ) -> None:
        if schedule not in SCHEDULES:
            raise UserError(
                f'RampUpHook.schedule={schedule!r}: expected one of {", ".join(SCHEDULES)}'
            )
        if not 0 <= fraction <= 1:
            raise UserError(
                f'RampUpHook.fraction={fraction}: expected a share of training in [0, 1]'
            )
        self.attribute = attribute
        self.start = start
        self.end = end
        self.schedule = SCHEDULES[schedule]
        self.fraction = fraction

    def value_at(self, iteration: int, max_iters: int) -> float:
        """The attribute's value.

        Args:
            iteration: t.
            max_iters: All iterations of the training.

        Returns:
            The value at t.
        """
        share = self.schedule(iteration, self.fraction * max_iters)
        return self.start + (self.end - self.start) * share

    def before_train(self, runner: Runner) -> None:
        """Checks the path, so that a typo ends the run before training starts.

        Raises `UserError` if the model has no such numeric attribute, or one that is fixed.
        """
        for owner, name in self._owners(runner):
            if isinstance(value := getattr(owner, name), bool) or not isinstance(value, Real):
                raise UserError(
                    f'RampUpHook.attribute={self.attribute!r}: expected a number, the '
                    f'model has {type(value).__name__} there'
                )
            try:
                setattr(owner, name, value)
            except AttributeError:
                raise UserError(
                    f'RampUpHook.attribute={self.attribute!r}: {type(owner).__name__}.{name} is '
                    'fixed once the model is built; expected a number that may change'
                ) from None

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Sets and logs the value."""
        value = self.value_at(runner.iter, runner.max_iters)
        for owner, name in self._owners(runner):
            setattr(owner, name, value)
        runner.message_hub.update_scalar(f'train/{self.attribute}', value)

    def _owners(self, runner: Runner) -> list[tuple[Any, str]]:
        """The objects that hold the attribute, and its name in each."""
        owners = [unwrap_model(runner.model)]
        *path, name = self.attribute.split('.')
        for part in path:
            owners = [child for owner in owners for child in self._children(owner, part)]
        return [(owner, self._existing(owner, name)) for owner in owners]

    def _children(self, owner: Any, part: str) -> list[Any]:
        if part == '*':
            if not (children := list(owner.children())):
                raise UserError(
                    f"RampUpHook.attribute={self.attribute!r}: '*' stands for modules, "
                    f'and {type(owner).__name__} has none'
                )
            return children
        return [getattr(owner, self._existing(owner, part))]

    def _existing(self, owner: object, part: str) -> str:
        """The name itself, if the object has such an attribute."""
        if not hasattr(owner, part):
            near = close_names(part, _modules_and_numbers(owner))
            hint = f'; did you mean {" or ".join(near)}?' if near else ''
            raise UserError(
                f'RampUpHook.attribute={self.attribute!r}: the model has no {part!r} there{hint}'
            )
        return part


def _modules_and_numbers(owner: Any) -> list[str]:
    """Names that may stand in a path: of child modules and of public numbers."""
    modules = [name for name, _ in owner.named_children()] if isinstance(owner, nn.Module) else []
    numbers = [
        name
        for name, value in getattr(owner, '__dict__', {}).items()
        if isinstance(value, Real) and not isinstance(value, bool) and not name.startswith('_')
    ]
    return modules + numbers
