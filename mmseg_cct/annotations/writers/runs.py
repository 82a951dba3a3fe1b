"""Packs masks into run lengths, as tools do; `rle` unpacks them."""

from typing import Literal

import numpy as np

_LENGTHS = (3, 4, 8, 16)  # bits of a run's length


def runs_of_mask(mask: np.ndarray, order: Literal['C', 'F']) -> list[int]:
    """Packs a bool mask `(H, W)` into alternating runs of 0 and 1, starting with 0.

    The runs go along rows for the order `C`, along columns for `F`.
    """
    values = np.concatenate([[False], mask.reshape(-1, order=order)])
    (changes,) = np.nonzero(values[1:] != values[:-1])
    return np.diff(changes, prepend=0, append=mask.size).tolist()


def brush_of_mask(mask: np.ndarray) -> list[int]:
    """Packs a bool mask `(H, W)` into the bytes of Label Studio's brush.

    The bytes hold four equal channels of 8 bits per pixel, as `rle.brush_alpha` reads them.
    """
    runs = runs_of_mask(mask, 'C')
    bits = [f'{4 * mask.size:032b}', f'{7:05b}', *(f'{width - 1:04b}' for width in _LENGTHS)]
    for index, run in enumerate(runs):
        values = 4 * run
        while values:
            choice = next((i for i, width in enumerate(_LENGTHS) if values <= 1 << width), 3)
            length = min(values, 1 << _LENGTHS[choice])
            bits.append(f'1{choice:02b}{length - 1:0{_LENGTHS[choice]}b}{255 * (index % 2):08b}')
            values -= length
    text = ''.join(bits)
    return np.packbits(np.frombuffer(text.encode(), np.uint8) - ord('0')).tolist()
