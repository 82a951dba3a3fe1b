"""What a setting says about objects that the size of the images makes too small."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from mmseg_cct.utils.object_widths import SMALLEST


class SmallObjects(NamedTuple):
    """The classes whose objects are small where the network sees them.

    Attributes:
        widths: Typical width by class, in pixels of the files.
        images: Width and height of the images.
        size: Width and height that they are resized into.
        stride: Stride of the network.
    """

    widths: Mapping[str, float]
    images: tuple[int, int]
    size: tuple[int, int]
    stride: int

    @property
    def scale(self) -> float:
        """By how much images shrink; rounding to the stride is no shrinking."""
        scale = min(own / whole for own, whole in zip(self.size, self.images))
        return scale if max(self.images) > max(self.size) + self.stride else 1.0

    @property
    def lost(self) -> list[str]:
        """Classes whose objects are narrower than two pixels."""
        return [name for name, width in self.widths.items() if width * self.scale < SMALLEST]

    @property
    def windows(self) -> dict[str, Any]:
        """The model's `test_cfg` that predicts images at their own size, in windows of `size`."""
        crop = self.size[::-1]
        return dict(mode='slide', crop_size=crop, stride=tuple(2 * side // 3 for side in crop))

    @property
    def number_of_windows(self) -> int:
        """Number of windows of an image."""
        steps = zip(self.images[::-1], self.size[::-1], self.windows['stride'])
        down, across = (ceil(max(whole - own, 0) / step) + 1 for whole, own, step in steps)
        return down * across

    def notes(self, is_windowed: bool) -> Iterator[str]:
        """Says by how much images shrink."""
        if self.scale < 1 and not is_windowed:
            yield (
                f'images of {_sides(self.images)} are resized to {_sides(self.size)}, '
                f'{self.scale:.2f} of their width (--size)'
            )

    def warnings(self, is_windowed: bool) -> Iterator[str]:
        """Says which objects are too small, what shows them and what that costs in time."""
        if lost := self.lost:
            yield (
                f'{self._widths_of(lost, self.scale)}, where they vanish; '
                + self._remedy(is_windowed)
            )
        scale = 1.0 if is_windowed else self.scale
        limit = self.stride if is_windowed or not lost else 0
        least = 0 if is_windowed else SMALLEST
        if fine := [n for n, width in self.widths.items() if least <= width * scale < limit]:
            yield (
                f'{self._widths_of(fine, scale)}, narrower than the stride of the network, '
                f'{self.stride}; a larger --size or a --backbone of stride 4, such as '
                'deeplabv3plus-mbv2, shows more of them'
            )

    def _widths_of(self, names: Sequence[str], scale: float) -> str:
        width = min(self.widths[name] for name in names)
        shown = f', {width * scale:.1f} where the network sees them' if scale < 1 else ''
        return f'{", ".join(names)}: objects are typically {width:.1f} pixels wide{shown}'

    def _remedy(self, is_windowed: bool) -> str:
        if self.scale == 1:
            return 'a larger --size magnifies them'
        slide = (
            "crops at full size and predicts windows (model.test_cfg.mode='slide'), "
            f'{self.number_of_windows} an image, each in the time of a whole image at --size '
            f'{_sides(self.size)}'
        )
        return (
            f'so the config trains on {slide}'
            if is_windowed
            else (f'without --size the config trains on {slide}')
        )


def _sides(size: tuple[int, int]) -> str:
    return f'{size[0]}x{size[1]}'
