"""What a config does about objects that the size of the images makes too small."""

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from mmseg_cct.datasets.files.object_widths import SMALLEST
from mmseg_cct.preflight.small_objects import narrow_objects


class SmallObjects(NamedTuple):
    """The objects of each class, and the size at which the network sees them."""

    widths: Mapping[str, float]  # typical width by class, in pixels of the files
    images: tuple[int, int]  # width and height
    size: tuple[int, int]  # width and height that they are resized into, or that of the windows
    stride: int  # of the network
    may_crop: bool = True  # whether images may keep their own size where objects would vanish

    @property
    def scale(self) -> float:
        """By how much images shrink; rounding to the stride is no shrinking."""
        scale = min(own / whole for own, whole in zip(self.size, self.images))
        return scale if max(self.images) > max(self.size) + self.stride else 1.0

    @property
    def vanish(self) -> bool:
        """Whether images shrink so much that the objects of a class are lost between pixels."""
        return (
            self.scale < 1 and min(self.widths.values(), default=SMALLEST) * self.scale < SMALLEST
        )

    @property
    def in_windows(self) -> bool:
        """Whether the config trains on crops and predicts windows of the images' own size."""
        return self.may_crop and self.vanish

    @property
    def windows(self) -> dict[str, Any]:
        """The model's `test_cfg` that predicts images at their own size, in windows of `size`."""
        crop = self.size[::-1]
        return dict(mode='slide', crop_size=crop, stride=tuple(2 * side // 3 for side in crop))

    def note(self) -> str | None:
        """Says by how much images shrink, or what is done so that objects do not vanish."""
        if self.scale == 1:
            return None
        shrunk = f'{_sides(self.size)}, {self.scale:.2f} of their width'
        if self.in_windows:
            return f'objects would vanish at {shrunk}, so the config {self._remedy()}'
        return f'images of {_sides(self.images)} are resized to {shrunk} (--size)'

    def warning(self) -> str | None:
        """Names the classes whose objects are small for the network, and what shows more."""
        scale = 1.0 if self.in_windows else self.scale
        remedy = (
            f'without --size the config {self._remedy()}'
            if self.vanish and not self.in_windows
            else 'a larger --size or a --backbone of stride 4, such as deeplabv3plus-mbv2, shows '
            'more of them'
        )
        widths = {name: width * scale for name, width in self.widths.items()}
        return narrow_objects(widths, self.stride, remedy)

    def _remedy(self) -> str:
        steps = zip(self.images[::-1], self.size[::-1], self.windows['stride'])
        down, across = (ceil(max(whole - own, 0) / step) + 1 for whole, own, step in steps)
        return (
            "trains on crops at full size and predicts windows (model.test_cfg.mode='slide'), "
            f'{down * across} an image, each in the time of a whole one at {_sides(self.size)}'
        )


def _sides(size: tuple[int, int]) -> str:
    return f'{size[0]}x{size[1]}'
