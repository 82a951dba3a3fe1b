"""Serves drawn scenes by address, for components that read an image a second time."""

import cv2
from mmengine.fileio import BaseStorageBackend, register_backend

from .shapes_scene import draw_scene

_SCHEME = 'shapes'


def scene_address(seed: int, number: int, size: int) -> str:
    """Returns a scene's address for mmengine's file functions, `shapes://SEED/SIZE/NUMBER.png`."""
    return f'{_SCHEME}://{seed}/{size}/{number:06d}.png'


@register_backend(_SCHEME, prefixes=_SCHEME)
class ShapesBackend(BaseStorageBackend):
    """Draws the scene at an address instead of reading a file.

    MMSeg's visualization reads an image again from the `img_path` of its data sample.
    """

    def get(self, filepath: str) -> bytes:
        """Returns the scene at an address as a PNG."""
        seed, size, name = str(filepath).removeprefix(f'{_SCHEME}://').split('/')
        image, _ = draw_scene(int(seed), int(name.removesuffix('.png')), int(size))
        return cv2.imencode('.png', image)[1].tobytes()

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """Raises `NotImplementedError`: a scene is not text."""
        raise NotImplementedError(f'{filepath}: a drawn scene is no text')
