"""torch.compile for parts of a model."""

from collections.abc import Sequence
from typing import Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn

from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.errors import UserError


@HOOKS.register_module()
class CompileHook(Hook):
    """Compiles modules of the model in place, which keeps the names in a checkpoint.

    mmengine's own option `compile` compiles the whole training step, where every file name and loss
    dict of a batch breaks the graph. The decoder bank compiles its chunks by itself.

    Args:
        modules: Names of the modules.
        **options: Arguments of `torch.compile`, such as `mode` or `dynamic`.
    """

    def __init__(self, modules: Sequence[str] = ('backbone', 'neck'), **options: Any) -> None:
        self.modules = modules
        self.options = options

    def before_train(self, runner: Runner) -> None:
        """Marks modules for compilation in the first iteration.

        Raises:
            UserError: The model has no module of a name.
        """
        model = unwrap_model(runner.model)
        for name in self.modules:
            module = getattr(model, name, None)
            if not isinstance(module, nn.Module):
                raise UserError(
                    'CompileHook.modules',
                    f'the model has no module {name!r}',
                    f'names such as {", ".join(child for child, _ in model.named_children())}',
                )
            module.compile(**self.options)
