"""Run lengths of masks: those of COCO and CVAT, and the bits of Label Studio's brush."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from mmseg_cct.errors import UserError

_LENGTHS = (3, 4, 8, 16)  # bits of a run's length in our brushes; others state theirs


def runs_of_mask(mask: np.ndarray, order: Literal['C', 'F']) -> list[int]:
    """Packs a bool mask `(H, W)` into alternating runs of 0 and 1, starting with 0.

    The runs go along rows for the order `C`, along columns for `F`.
    """
    values = np.concatenate([[False], mask.reshape(-1, order=order)])
    (changes,) = np.nonzero(values[1:] != values[:-1])
    return np.diff(changes, prepend=0, append=mask.size).tolist()


def mask_of_runs(
    counts: Sequence[int], size: tuple[int, int], order: Literal['C', 'F']
) -> np.ndarray:
    """Unpacks alternating runs of 0 and 1, starting with 0, into a bool mask `(H, W)`.

    `size` is width and height; the runs go along rows for the order `C`, along columns for `F`.
    """
    width, height = size
    if (total := sum(counts)) != width * height:
        raise UserError('RLE', f'{total} pixels', f'{width}×{height}')
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape(height, width, order=order)


def coco_counts(text: str) -> list[int]:
    """Reads the runs of COCO's compressed RLE: five bits per character, lowest first.

    From the fourth run on, the difference from the run two places before is stored.
    """
    counts: list[int] = []
    value = shift = 0
    for code in text.encode():
        bits = code - 48
        if not 0 <= bits < 64:
            raise UserError('RLE', f'character {chr(code)!r}', "COCO's alphabet")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:  # the last character of the number, whose highest bit is the sign
            value -= (bits & 16) << (shift - 4)
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value = shift = 0
    return counts


def brush_of_mask(mask: np.ndarray) -> list[int]:
    """Packs a bool mask `(H, W)` into the bytes of Label Studio's brush.

    The bytes hold four equal channels of 8 bits per pixel.
    """
    runs = runs_of_mask(mask, 'C')
    bits = [f'{4 * mask.size:032b}', f'{7:05b}', *(f'{width - 1:04b}' for width in _LENGTHS)]
    for index, run in enumerate(runs):
        values = 4 * run
        while values:
            choice = next((i for i, width in enumerate(_LENGTHS) if values <= 1 << width), 3)
            length = min(values, 1 << _LENGTHS[choice])  # what remains becomes another run
            bits.append(f'1{choice:02b}{length - 1:0{_LENGTHS[choice]}b}{255 * (index % 2):08b}')
            values -= length
    text = ''.join(bits)
    return np.packbits(np.frombuffer(text.encode(), np.uint8) - ord('0')).tolist()


def brush_alpha(packed: Sequence[int], size: tuple[int, int]) -> np.ndarray:
    """Unpacks Label Studio's brush to bool `(H, W)`: True where the last of four channels is not 0.

    A header of bits holds the number of values, their width and four widths of run lengths. Each
    run then has a bit that says whether one value is repeated, two bits that choose the width of
    its length, the length, and the values.
    """
    width, height = size
    bits = np.unpackbits(np.asarray(packed, np.uint8))
    position = 0

    def read(number: int) -> int:
        nonlocal position
        position += number
        if position > len(bits):
            raise UserError('truncated brush RLE')
        return int(''.join(map(str, bits[position - number : position].tolist())), 2)

    total, word = read(32), read(5) + 1
    if total != 4 * width * height or word != 8:
        problem = f'{total} values of {word} bits'
        raise UserError('brush', problem, f'{width}×{height}, four of 8 bits a pixel')
    lengths = [read(4) + 1 for _ in range(4)]
    values, done = np.zeros(total, np.uint8), 0
    while done < total:
        is_repeated = read(1)
        until = done + 1 + read(lengths[read(2)])
        if is_repeated:
            values[done:until] = read(8)
        else:
            end = position + 8 * (until - done)
            words = np.packbits(bits[position:end])
            if end > len(bits) or until > total:
                raise UserError('truncated brush RLE')
            values[done:until], position = words, end
        done = until
    return values.reshape(height, width, 4)[..., 3] > 0
