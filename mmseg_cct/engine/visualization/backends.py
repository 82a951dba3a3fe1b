"""Where mmengine writes curves."""

from typing import Any

from mmengine.visualization import TensorboardVisBackend
from mmseg.registry import VISBACKENDS


@VISBACKENDS.register_module()
class GroupedTensorboardVisBackend(TensorboardVisBackend):
    """mmengine's TensorBoard backend, with the curves of one part of the model in one group.

    TensorBoard groups by the part of a name before the first `/`, but MMSeg joins the names of
    losses by a dot; so `aux.consistency` becomes `aux/consistency`.
    """

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        """Writes a value; the first dot of its name becomes a `/`."""
        super().add_scalar(name.replace('.', '/', 1), value, step, **kwargs)
