"""Checkpoint files of the public code as this project's, and back."""

from dataclasses import dataclass
from typing import Any

from mmseg.utils import get_classes, get_palette

from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

from .public_names import Renamed, is_public, to_project, to_public

# The public code's auxiliary decoders, as its config calls them, in the order of its module list.
_DECODER_KINDS = (
    'vat',
    'drop',
    'cutout',
    'context_masking',
    'object_masking',
    'feature_drop',
    'feature_noise',
)
_VOC_CLASSES = 21


@dataclass
class Conversion:
    """What became of a checkpoint.

    Attributes:
        to_public: The direction.
        num_weights: Number of entries written.
        num_classes: C.
        num_decoders: K, 0 for a model without auxiliary decoders.
        decoder_counts: Decoders by perturbation, in the public code's names and order; None where
            the file does not say.
        missing: Names that the source lacks.
        unexpected: Names of the source that were left out.
    """

    to_public: bool
    num_weights: int
    num_classes: int
    num_decoders: int
    decoder_counts: dict[str, int] | None
    missing: list[str]
    unexpected: list[str]


def convert_file(source: str, target: str, *, partial: bool = False) -> Conversion:
    """Converts a checkpoint into the format of the other code; its names say which one it has.

    Args:
        source: Checkpoint of the public code or of this project.
        target: File to write.
        partial: Whether to write it even if weights are missing or left over.

    Returns:
        What became of it; without `partial` the file is written only if nothing is missing or
        unexpected.

    Raises:
        UserError: The source is no such checkpoint.
    """
    checkpoint = read_checkpoint(source)
    try:
        public = is_public(checkpoint['state_dict'])
        renamed = (to_project if public else to_public)(checkpoint['state_dict'])
    except UserError as error:
        raise UserError(f'{source}: {error}') from None
    decoder = 'decode_head.conv_seg.weight' if public else 'module.main_decoder.upsample.0.weight'
    num_classes = len(renamed.state.get(decoder, ()))
    if partial or not (renamed.missing or renamed.unexpected):
        made = _project_checkpoint if public else _public_checkpoint
        write_atomic(target, checkpoint_bytes(made(checkpoint, renamed, num_classes)))
    return Conversion(
        not public,
        len(renamed.state),
        num_classes,
        renamed.num_decoders,
        _decoder_counts(checkpoint) if public else None,
        renamed.missing,
        renamed.unexpected,
    )


def _project_checkpoint(
    checkpoint: dict[str, Any], renamed: Renamed, num_classes: int
) -> dict[str, Any]:
    # what the public code wrote beside the weights is kept for the way back
    meta: dict[str, Any] = dict(
        public={key: value for key, value in checkpoint.items() if key != 'state_dict'}
    )
    if num_classes == _VOC_CLASSES:  # the public code knows VOC alone
        meta['dataset_meta'] = dict(classes=tuple(get_classes('voc')), palette=get_palette('voc'))
    return dict(meta=meta, state_dict=renamed.state)


def _public_checkpoint(
    checkpoint: dict[str, Any], renamed: Renamed, num_classes: int
) -> dict[str, Any]:
    meta = checkpoint.get('meta') or {}
    # the entries that the public code reads when it resumes
    extra = dict(arch='DataParallel', epoch=meta.get('epoch', 0), monitor_best=0.0, config=None)
    return {**extra, **meta.get('public', {}), 'state_dict': renamed.state}


def _decoder_counts(checkpoint: dict[str, Any]) -> dict[str, int] | None:
    model = (checkpoint.get('config') or {}).get('model') or {}
    if not model or not set(_DECODER_KINDS) <= model.keys():
        return None
    return {kind: model[kind] for kind in _DECODER_KINDS}
