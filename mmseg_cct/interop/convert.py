"""Conversion of checkpoints between the authors' public code and this project."""

from dataclasses import dataclass
from typing import Any

from mmseg.utils import get_classes, get_palette

from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

from .public_names import (
    Renamed,
    backbone_to_mmseg,
    is_backbone,
    is_public,
    to_project,
    to_public,
)

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
        to_public: Whether the target is for the public code.
        num_weights: Number of converted entries.
        num_classes: C, the number of classes; 0 for ImageNet weights of the backbone.
        num_decoders: K, 0 for a model without auxiliary decoders.
        decoder_counts: Decoders by perturbation, in the public code's names and order; None if the
            source does not tell.
        missing: Names that the source lacks.
        unexpected: Names of the source that are left out.
    """

    to_public: bool
    num_weights: int
    num_classes: int
    num_decoders: int
    decoder_counts: dict[str, int] | None
    missing: list[str]
    unexpected: list[str]


def convert_file(source: str, target: str, *, partial: bool = False) -> Conversion:
    """Converts a checkpoint to the other code's format; the names of its weights tell which.

    The authors' ImageNet weights become those of `model.backbone`. With `partial` the file is
    written even if names are missing or unexpected. A checkpoint of neither code is a `UserError`.
    """
    checkpoint = read_checkpoint(source)
    try:
        state = checkpoint['state_dict']
        public = is_backbone(state) or is_public(state)
        rename = to_project if public else to_public
        renamed = (backbone_to_mmseg if is_backbone(state) else rename)(state)
    except UserError as error:
        raise UserError(source, error) from None
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
    # The public code's other entries are kept for the way back.
    meta: dict[str, Any] = dict(
        public={key: value for key, value in checkpoint.items() if key != 'state_dict'}
    )
    if num_classes == _VOC_CLASSES:  # the public code supports VOC only
        meta['dataset_meta'] = dict(classes=tuple(get_classes('voc')), palette=get_palette('voc'))
    return dict(meta=meta, state_dict=renamed.state)


def _public_checkpoint(
    checkpoint: dict[str, Any], renamed: Renamed, num_classes: int
) -> dict[str, Any]:
    meta = checkpoint.get('meta') or {}
    # The public code reads these entries on resume.
    extra = dict(arch='DataParallel', epoch=meta.get('epoch', 0), monitor_best=0.0, config=None)
    return {**extra, **meta.get('public', {}), 'state_dict': renamed.state}


def _decoder_counts(checkpoint: dict[str, Any]) -> dict[str, int] | None:
    model = (checkpoint.get('config') or {}).get('model') or {}
    if not model or not set(_DECODER_KINDS) <= model.keys():
        return None
    return {kind: model[kind] for kind in _DECODER_KINDS}
