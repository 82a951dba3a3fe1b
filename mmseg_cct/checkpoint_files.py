"""Reading and writing checkpoint files."""

import io
import os
from pathlib import Path
from typing import Any

import torch
from mmengine.runner.checkpoint import CheckpointLoader

from mmseg_cct.errors import UserError


def read_checkpoint(file: str) -> dict[str, Any]:
    """Reads a checkpoint to the CPU.

    Args:
        file: File or address.

    Returns:
        The checkpoint; the weights are under `state_dict` even if the file holds nothing else.

    Raises:
        UserError: There is no such file, or it is no checkpoint.
    """
    if '://' not in file and not os.path.isfile(file):
        raise UserError(f'{file}: no such checkpoint file')
    try:
        loaded = CheckpointLoader.load_checkpoint(file, map_location='cpu', logger='silent')
    except Exception as error:  # torch fails in many ways on a file that is no checkpoint
        line = ' '.join(f'{type(error).__name__}: {error}'.split())
        raise UserError(f'{file}: not a checkpoint that can be loaded: {line}') from error
    if not isinstance(loaded, dict):
        raise UserError(f'{file}: holds a {type(loaded).__name__}, expected a dict with the '
                        'weights under state_dict')
    return loaded if 'state_dict' in loaded else dict(state_dict=loaded)


def checkpoint_bytes(checkpoint: dict[str, Any]) -> bytes:
    """Serialises a checkpoint; the bytes depend on its contents alone.

    Args:
        checkpoint: What to save.

    Returns:
        What a file of it holds.
    """
    # `torch.save` puts the name of a file into it, not that of a buffer
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    return buffer.getvalue()


def write_whole(file: str | Path, data: bytes) -> None:
    """Writes a file as a whole or not at all.

    Args:
        file: Where; folders are made.
        data: What.
    """
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{path.name}.part')
    part.write_bytes(data)
    os.replace(part, path)
