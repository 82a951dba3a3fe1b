"""Where mmengine writes curves and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from mmengine.visualization import LocalVisBackend, TensorboardVisBackend
from mmengine.visualization.vis_backend import force_init_env
from mmseg.registry import VISBACKENDS
from PIL import Image

from mmseg_cct.datasets.files.images import write_png


@VISBACKENDS.register_module()
class GroupedTensorboardVisBackend(TensorboardVisBackend):
    """mmengine's TensorBoard backend, with the curves of one part of the model in one group.

    TensorBoard groups by the part of a name before the first `/`, but MMSeg joins the names of
    losses by a dot; so `aux.consistency` becomes `aux/consistency`.
    """

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        """Writes a value; the first dot of its name becomes a `/`."""
        super().add_scalar(name.replace('.', '/', 1), value, step, **kwargs)


def save_under_any_name() -> None:
    """Makes `LocalVisBackend` write its pictures without OpenCV.

    OpenCV ends the process by a signal if the name of the file or its folder is not UTF-8.
    """
    LocalVisBackend.add_image = _add_image


@force_init_env
def _add_image(
    self: LocalVisBackend, name: str, image: np.ndarray, step: int = 0, **_: Any
) -> None:
    write_png(Path(self._img_save_dir, f'{name}_{step}.png'), Image.fromarray(image))
