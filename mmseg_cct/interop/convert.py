"""Conversion of checkpoints of the authors' public code."""

from mmseg.utils import get_classes, get_palette

from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

from .public_names import Renamed, backbone_to_mmseg, is_backbone, is_public, to_project

_VOC_CLASSES = 21


def convert_file(source: str, target: str, *, partial: bool = False) -> Renamed:
    """Converts a checkpoint of the authors' code, or their ImageNet weights for `model.backbone`.

    If names are missing or unexpected, `target` is written only with `partial`.

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
    meta = {}
    if renamed.num_classes == _VOC_CLASSES:  # the public code supports VOC only
        meta['dataset_meta'] = dict(classes=tuple(get_classes('voc')), palette=get_palette('voc'))
    if partial or not (renamed.missing or renamed.unexpected):
        write_atomic(target, checkpoint_bytes(dict(meta=meta, state_dict=renamed.state)))
    return renamed
