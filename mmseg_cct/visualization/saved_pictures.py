"""Lets mmengine save pictures under any name that a file may have."""

from pathlib import Path
from typing import Any

import numpy as np
from mmengine.visualization import LocalVisBackend
from mmengine.visualization.vis_backend import force_init_env
from PIL import Image

from mmseg_cct.utils.image_files import write_png


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
