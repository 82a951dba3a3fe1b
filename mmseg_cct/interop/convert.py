"""Conversion of checkpoints of the authors' public code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmseg.utils import get_classes, get_palette

from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

from .public_names import backbone_to_mmseg, is_backbone, is_public, to_project

# Auxiliary decoders in the public code's config, in the order of its module list.
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
    """Outcome of a conversion.

    Attributes:
        num_weights: Number of converted entries.
        num_classes: C, the number of classes; 0 for ImageNet weights of the backbone.
        num_decoders: K, 0 for a model without auxiliary decoders.
        decoder_counts: Decoders by perturbation, in the public code's names and order; None if the
            source does not tell.
        missing: Names that the source lacks.
        unexpected: Names of the source that are left out.
    """

    num_weights: int
    num_classes: int
    num_decoders: int
    decoder_counts: dict[str, int] | None
    missing: list[str]
    unexpected: list[str]


def convert_file(source: str, target: str, *, partial: bool = False) -> Conversion:
    """Converts a checkpoint of the authors' code, or their ImageNet weights for `model.backbone`.

    Args:
        source: The checkpoint.
        target: The file to write.
        partial: Whether to write even if names are missing or unexpected.

    Returns:
        What was converted, and the names that do not match.

    Raises:
        UserError: If the checkpoint is not one of the authors' code.
    """
    checkpoint = read_checkpoint(source)
    state = checkpoint['state_dict']
    try:
        if is_backbone(state):
            renamed = backbone_to_mmseg(state)
        elif is_public(state):
            renamed = to_project(state)
        else:
            raise UserError("has this project's names already; expected the public code's")
    except UserError as error:
        raise UserError(source, error) from None
    num_classes = len(renamed.state.get('decode_head.conv_seg.weight', ()))
    meta = {}
    if num_classes == _VOC_CLASSES:  # the public code supports VOC only
        meta['dataset_meta'] = dict(classes=tuple(get_classes('voc')), palette=get_palette('voc'))
    if partial or not (renamed.missing or renamed.unexpected):
        write_atomic(target, checkpoint_bytes(dict(meta=meta, state_dict=renamed.state)))
    return Conversion(
        len(renamed.state),
        num_classes,
        renamed.num_decoders,
        _decoder_counts(checkpoint),
        renamed.missing,
        renamed.unexpected,
    )


def _decoder_counts(checkpoint: Mapping[str, Any]) -> dict[str, int] | None:
    model = (checkpoint.get('config') or {}).get('model') or {}
    if not model or not set(_DECODER_KINDS) <= model.keys():
        return None
    return {kind: model[kind] for kind in _DECODER_KINDS}
