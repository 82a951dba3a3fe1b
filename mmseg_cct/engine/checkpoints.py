"""Atomic, recoverable, validated checkpoints."""

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.fileio import LocalBackend, register_backend
from mmengine.runner.checkpoint import CheckpointLoader

from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import find_run
from mmseg_cct.config.walk import get_by_key
from mmseg_cct.engine.weights import require_finite_weights, weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.log import warn

from .safe_loading import find_damage


@register_backend('atomic_local')
class AtomicLocalBackend(LocalBackend):
    """mmengine's local file backend that writes each file completely or not at all.

    A config names it in `backend_args=dict(backend='atomic_local')`.
    """

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Writes a temporary file beside the path, waits for the disk, and renames it."""
        write_atomic(filepath, obj)


def read_checkpoint(checkpoint: str, training: bool = False) -> dict[str, Any]:
    """Reads a checkpoint from a file or a URL onto the CPU, or refuses it (`check_checkpoint`).

    The weights are under `state_dict` even if the file holds nothing else.
    """
    # None of the loaders runs code (`safe_loading`).
    content = CheckpointLoader.load_checkpoint(checkpoint, 'cpu', logger='silent')
    check_checkpoint(content, checkpoint, training)
    return dict(content) if 'state_dict' in content else dict(state_dict=content)


def check_checkpoint(content: Any, checkpoint: str, training: bool = False) -> None:
    """Checks that a checkpoint holds weights, which are finite tensors.

    If a `training` goes on from it, it must hold that state too, but BatchNorm's averages may be
    non-finite: those in the checkpoint from before a non-finite loss have already seen that batch.
    """
    state = weights(content) if isinstance(content, Mapping) else {}
    if not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise UserError(checkpoint, 'holds no weights', 'a checkpoint with state_dict')
    require_finite_weights(state, checkpoint, training)
    missing = [key for key in ('meta', 'optimizer', 'message_hub') if key not in content]
    if training and missing:
        alone = f'to start from weights alone: --cfg-options load_from={checkpoint}'
        expected = f'a checkpoint that a training wrote to go on from ({alone})'
        raise UserError('--resume', f'{checkpoint} has no {", ".join(missing)}', expected)


def newest_checkpoint(work_dir: str, template: str | None = None) -> str | None:
    """Finds the newest checkpoint in a work directory, intact or not; None if there is none.

    A best checkpoint counts only if there is no other. `template` is the hook's `filename_tmpl`.
    """
    best = sorted(map(str, Path(work_dir).glob('best_*.pth')))
    return next(newest_first(work_dir, template), best[-1] if best else None)


def find_trained(
    run: str | Path, checkpoint: str | Path | None = None, options: Mapping[str, Any] | None = None
) -> tuple[Config, str]:
    """Finds a trained network: the config of a training and one of its checkpoints.

    `run` is a work directory, whose config is the file that the training wrote there, a checkpoint
    in one, or a config, which needs the `checkpoint`. `options` are those of `load_config`.

    Raises:
        UserError: The folder has no checkpoint, or not exactly one config; or the config is missing
            or does not load.
    """
    config = load_config(find_run(run, checkpoint), options or {})
    if checkpoint is None and Path(run).is_file():
        checkpoint = run
    if checkpoint is None:
        template = get_by_key(config, 'default_hooks.checkpoint.filename_tmpl')
        checkpoint = newest_checkpoint(str(run), template)
    if checkpoint is None:
        raise UserError(run, 'no checkpoint in it')
    return config, str(checkpoint)


def find_resumable(work_dir: str, template: str | None = None) -> str | None:
    """Finds the newest intact checkpoint in a work directory; warns of each damaged one.

    Starts with the one that `last_checkpoint` names. `template` is the hook's `filename_tmpl`.
    """
    for checkpoint in newest_first(work_dir, template):
        if (damage := find_damage(checkpoint)) is None:
            return checkpoint
        warn(f'{checkpoint}: {damage}; trying the checkpoint before it')
    return None


def newest_first(work_dir: str, template: str | None = None) -> Iterator[str]:
    """Yields the checkpoints in a work directory, intact or not, newest first."""
    named = Path(work_dir, 'last_checkpoint')
    last = named.read_text(errors='replace').strip() if named.is_file() else ''
    # The work directory may have been copied or moved, or given by another relative path: use its
    # own file, not the original's.
    in_work_dir = os.path.join(work_dir, os.path.basename(last))
    last = in_work_dir if os.path.isfile(in_work_dir) else last
    if os.path.isfile(last):
        yield last
    # An earlier training may have left files with higher numbers: only those below the named count.
    below = _number(last, template)
    numbered = ((_number(path, template), str(path)) for path in Path(work_dir).glob('*.pth'))
    earlier = [(n, path) for n, path in numbered if n is not None and (below is None or n < below)]
    yield from (path for _, path in sorted(earlier, reverse=True))


def _number(checkpoint: str | Path, template: str | None) -> int | None:
    for pattern in ('iter_{}.pth', 'epoch_{}.pth', template or ''):
        start, _, end = map(re.escape, pattern.partition('{}'))
        if match := re.fullmatch(rf'{start}(\d+){end}', os.path.basename(checkpoint)):
            return int(match[1])
    return None


def checkpoint_bytes(checkpoint: dict[str, Any]) -> bytes:
    """Serialises a checkpoint to bytes that depend only on its contents."""
    # `torch.save` would write the name of a file into it; a buffer has none
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    return buffer.getvalue()
