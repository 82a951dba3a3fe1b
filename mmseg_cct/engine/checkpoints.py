"""Atomic, recoverable, validated checkpoints."""

import io
import logging
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.fileio import LocalBackend, register_backend
from mmengine.logging import print_log
from mmengine.runner import find_latest_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader

from mmseg_cct.config.text import read_config_text
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

from .safe_loading import find_damage

# What a training needs to go on, apart from the weights.
_TRAINING_STATE = ('meta', 'optimizer', 'message_hub')


@register_backend('atomic_local')
class AtomicLocalBackend(LocalBackend):
    """mmengine's local files, each written as a whole or not at all.

    A config names it in `backend_args=dict(backend='atomic_local')`.
    """

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Writes to a file beside the path, waits for the disk, and renames it.

        Args:
            obj: The bytes.
            filepath: Where to write; its folder is made where it is missing.
        """
        write_atomic(filepath, obj)


def require_checkpoint(checkpoint: str) -> None:
    """Checks that a checkpoint file exists; addresses are left to mmengine.

    Args:
        checkpoint: File or address.

    Raises:
        UserError: There is no such file.
    """
    if '://' not in checkpoint and not os.path.isfile(checkpoint):
        raise UserError(f'{checkpoint}: no such checkpoint file')


def read_checkpoint(checkpoint: str, training: bool = False) -> dict[str, Any]:
    """Reads a checkpoint onto the CPU.

    Args:
        checkpoint: File or address.
        training: Whether a training goes on from it. BatchNorm's averages then may be non-finite,
            as in the checkpoint from before a non-finite loss: they have seen that batch.

    Returns:
        Its content; the weights are under `state_dict` even if the file holds nothing else.

    Raises:
        UserError: There is none, it is damaged, it holds more than data, or no weights, or one that
            is not finite.
    """
    # No scheme's loader runs code (`safe_loading`).
    content = CheckpointLoader.load_checkpoint(checkpoint, 'cpu', logger='silent')
    if not isinstance(content, Mapping) or not any(
        isinstance(value, torch.Tensor) for value in weights(content).values()
    ):
        raise UserError(f'{checkpoint}: holds no weights; expected a checkpoint with state_dict')
    require_finite_weights(weights(content), checkpoint, training)
    return dict(content) if 'state_dict' in content else dict(state_dict=content)


def require_finite_weights(
    state: Mapping[str, Any], checkpoint: str, training: bool = False
) -> None:
    """Checks that weights are finite numbers.

    Args:
        state: Weights by name.
        checkpoint: Their file, for the message.
        training: Whether BatchNorm's averages may be non-finite, see `read_checkpoint`.

    Raises:
        UserError: One is NaN or infinite.
    """
    averages = ('running_mean', 'running_var')
    wrong = [
        name
        for name, value in state.items()
        if not _is_finite(value) and not (training and name.endswith(averages))
    ]
    if wrong:
        raise UserError(
            f'{checkpoint}: {len(wrong)} of its weights are NaN or infinite, the first is '
            f'{wrong[0]}; expected finite weights'
        )


def _is_finite(value: Any) -> bool:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return not is_float or bool(torch.isfinite(value).all())


def weights(content: Mapping[str, Any]) -> dict[str, Any]:
    """The weights in a checkpoint.

    Args:
        content: What the file holds: weights by name, at the top or under `state_dict`.

    Returns:
        Weights by name, without the prefix `module.` of parallel wrappers.
    """
    state = content.get('state_dict', content)
    state = state if isinstance(state, Mapping) else {}
    return {str(name).removeprefix('module.'): value for name, value in state.items()}


def saved_config(content: Mapping[str, Any], checkpoint: str) -> Config | None:
    """The config that a checkpoint carries; its text is read and never run.

    Args:
        content: What the checkpoint holds.
        checkpoint: Its name, for messages.

    Returns:
        The config of its training, or of a published model; `None` where there is none. A
        `UserError` says where it is no list of plain settings.
    """
    text = (content.get('meta') or {}).get('cfg')
    return read_config_text(text, checkpoint) if isinstance(text, str) else None


def is_training_only(name: str) -> bool:
    """Whether a part of the model runs in training alone; published checkpoints have none of them.

    Args:
        name: Of a weight or of a part, dotted.

    Returns:
        True for auxiliary decoders and heads, those of single domains too, for the discriminator
        and for an adaptive threshold.
    """
    training_only = ('auxiliary_head', 'supervised_heads', 'discriminator', 'loss_strong')
    return any(part in training_only for part in name.split('.'))


def require_matching_weights(
    model: torch.nn.Module, content: Mapping[str, Any], checkpoint: str, training: bool
) -> None:
    """Checks that a checkpoint has every weight of a model, in the same shape.

    mmengine only logs what does not fit and leaves those weights random.

    Args:
        model: The model.
        content: What the checkpoint holds.
        checkpoint: Its name, for the message.
        training: Whether the parts that only training runs must match too.

    Raises:
        UserError: A weight is missing or has another shape or, for a training, is too many.
    """
    found = {name: getattr(value, 'shape', ()) for name, value in weights(content).items()}
    expected = {name: value.shape for name, value in model.state_dict().items()}
    wrong = [
        f'{name} is {tuple(found[name]) if name in found else "missing"}, expected {tuple(shape)}'
        for name, shape in expected.items()
        if found.get(name) != shape
        and (training or not is_training_only(name))
        # A counter that checkpoints of other programs lack.
        and not (name not in found and name.endswith('num_batches_tracked'))
    ]
    if training and not wrong:
        wrong = [f'{name} is no part of the model' for name in found if name not in expected]
    if wrong:
        meta = (content.get('meta') or {}).get('dataset_meta') or {}
        hint = f' (trained on {len(meta["classes"])} classes)' if meta.get('classes') else ''
        raise UserError(
            f'{checkpoint}: does not fit the config in {len(wrong)} of {len(expected)} entries, '
            f'the first: {wrong[0]}{hint}'
        )


def require_initial_weights(
    model: torch.nn.Module, content: Mapping[str, Any], checkpoint: str
) -> None:
    """Checks that the weights that a training starts from are those of its network.

    What is new in the training, such as auxiliary decoders or a layer for other classes, stays as
    it was initialised; mmengine only logs it, even where nothing fits.

    Args:
        model: The model.
        content: What the checkpoint holds.
        checkpoint: Its name, for the message.

    Raises:
        UserError: Less than half of the weights that are not of training alone are there in the
            model's shape.
    """
    found = {name: getattr(value, 'shape', ()) for name, value in weights(content).items()}
    expected = {
        name: value.shape
        for name, value in model.state_dict().items()
        if value.is_floating_point() and not is_training_only(name)
    }
    fitting = sum(found.get(name) == shape for name, shape in expected.items())
    if 2 * fitting < len(expected):
        raise UserError(
            f'load_from={checkpoint!r}: has {fitting} of the {len(expected)} weights of the model '
            'in its shape; expected at least half (weights of an encoder alone belong in '
            'model.backbone.init_cfg)'
        )


def require_training_state(content: Mapping[str, Any], checkpoint: str) -> None:
    """Checks that a checkpoint holds the state that a resume needs.

    Args:
        content: What the checkpoint holds.
        checkpoint: Its name, for the message.

    Raises:
        UserError: It holds weights only.
    """
    missing = [key for key in _TRAINING_STATE if key not in content]
    if missing:
        raise UserError(
            f'--resume: {checkpoint} has no {", ".join(missing)}; expected a checkpoint that a '
            'training wrote to go on from (to start from weights alone: --cfg-options '
            f'load_from={checkpoint})'
        )


def newest_checkpoint(work_dir: str) -> str | None:
    """Finds the newest checkpoint of a training, intact or not.

    Args:
        work_dir: The training's work directory.

    Returns:
        The file; `None` where no training has written one.
    """
    return next(_newest_first(work_dir), None)


def find_resumable(work_dir: str) -> str | None:
    """Finds the newest intact checkpoint of a training.

    Args:
        work_dir: The training's work directory.

    Returns:
        The file that `last_checkpoint` names or, where that one is damaged or missing, the newest
        before it, each named in a warning; `None` where none is intact.
    """
    for checkpoint in _newest_first(work_dir):
        damage = _damage(checkpoint)
        if damage is None:
            return checkpoint
        print_log(
            f'{checkpoint}: {damage}; trying the checkpoint before it',
            logger='current',
            level=logging.WARNING,
        )
    return None


def _newest_first(work_dir: str) -> Iterator[str]:
    named = os.path.isfile(os.path.join(work_dir, 'last_checkpoint'))
    last = find_latest_checkpoint(work_dir) if named else None
    # The work directory may have been copied or moved, or been given by another relative path: its
    # own file counts, not that of the original.
    if last:
        own = os.path.join(work_dir, os.path.basename(last))
        last = own if os.path.exists(own) else last
    # An earlier training may have left files with higher numbers, so the named one bounds them.
    below = _number(last) if last else None
    if last:
        yield last
    numbered = sorted(
        (number, str(path))
        for path in Path(work_dir).glob('*.pth')
        if (number := _number(path)) is not None and (below is None or number < below)
    )
    yield from (path for _, path in reversed(numbered))


def _number(checkpoint: str | Path) -> int | None:
    match = re.fullmatch(r'(?:iter|epoch)_(\d+)\.pth', os.path.basename(checkpoint))
    return int(match[1]) if match else None


def _damage(checkpoint: str) -> str | None:
    """What is wrong with a checkpoint file, found without unpacking it."""
    if '://' in checkpoint:
        return None
    if not os.path.isfile(checkpoint):
        return 'no such file'
    if not zipfile.is_zipfile(checkpoint):  # the index is at the end of the file
        return f'not a whole checkpoint, {os.path.getsize(checkpoint)} bytes'
    return find_damage(checkpoint)


def checkpoint_bytes(checkpoint: dict[str, Any]) -> bytes:
    """Serialises a checkpoint; the bytes depend on its contents alone.

    Args:
        checkpoint: The content.

    Returns:
        The bytes of its file.
    """
    # `torch.save` puts the name of a file into it, not that of a buffer
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    return buffer.getvalue()
