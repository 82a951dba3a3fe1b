"""Conversion of checkpoints of the authors' public code: other names for the same weights.

Both have the same network: a ResNet-50 with a 3×3 stem at output stride 8, pyramid pooling at four
bins, decoders of sub-pixel convolutions. Names of the main path correspond one to one. The K
auxiliary decoders are separate modules in the public code and slices of stacked parameters here, in
the same order. Rows follow PixelShuffle in both, so no weight moves within a decoder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from mmseg.utils import get_classes, get_palette
from torch import Tensor

from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.engine.weights import weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

State = Mapping[str, Tensor]  # weights by name
_BLOCKS = (3, 4, 6, 3)  # of the stages of a ResNet-50
_BINS = 4
_VOC_CLASSES = 21
_LEVELS = 3  # log2 of the output stride
_CONV = ('weight',)
_NORM = ('weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked')
_CONV_BIAS = ('weight', 'bias')


def _shared_names() -> dict[str, str]:
    """Project name by public name, without auxiliary decoders."""
    layers: list[tuple[str, str, tuple[str, ...]]] = []
    for i in range(3):  # stem: convolution, norm and ReLU in turn
        layers.append((f'encoder.base.0.0.conv{i + 1}', f'backbone.stem.{3 * i}', _CONV))
        layers.append((f'encoder.base.0.0.bn{i + 1}', f'backbone.stem.{3 * i + 1}', _NORM))
    for stage, num_blocks in enumerate(_BLOCKS, 1):
        for block in range(num_blocks):
            public, ours = f'encoder.base.{stage}.{block}', f'backbone.layer{stage}.{block}'
            for i in (1, 2, 3):
                layers.append((f'{public}.conv{i}', f'{ours}.conv{i}', _CONV))
                layers.append((f'{public}.bn{i}', f'{ours}.bn{i}', _NORM))
            if block == 0:
                layers.append((f'{public}.downsample.0', f'{ours}.downsample.0', _CONV))
                layers.append((f'{public}.downsample.1', f'{ours}.downsample.1', _NORM))
    for i in range(_BINS):
        layers.append((f'encoder.psp.stages.{i}.1', f'neck.pyramid.{i}.1.conv', _CONV))
        layers.append((f'encoder.psp.stages.{i}.2', f'neck.pyramid.{i}.1.bn', _NORM))
    layers.append(('encoder.psp.bottleneck.0', 'neck.bottleneck.conv', _CONV))
    layers.append(('encoder.psp.bottleneck.1', 'neck.bottleneck.bn', _NORM))
    layers.append(('main_decoder.upsample.0', 'decode_head.conv_seg', _CONV))
    for level in range(_LEVELS):
        public, ours = f'main_decoder.upsample.{level + 1}.conv', f'decode_head.upsample.{level}.0'
        layers.append((public, ours, _CONV_BIAS))
    return {f'{public}.{n}': f'{ours}.{n}' for public, ours, names in layers for n in names}


SHARED_NAMES = _shared_names()

# Of the auxiliary decoders: project name, and the end of the public name in each decoder
_AUXILIARY = {'auxiliary_head.proj': '0.weight'} | {
    f'auxiliary_head.up.{level}.{name}': f'{level + 1}.conv.{name}'
    for level in range(_LEVELS)
    for name in _CONV_BIAS
}

# MMSeg's name by name in the authors' ImageNet weights of the encoder's ResNet-50
BACKBONE_NAMES = {
    public.replace('encoder.base.0.0.', 'prefix.').replace('encoder.base.', 'layer'): (
        ours.removeprefix('backbone.')
    )
    for public, ours in SHARED_NAMES.items()
    if ours.startswith('backbone.')
}


@dataclass
class Renamed:
    """State dict in this project's names."""

    state: dict[str, Tensor]
    num_decoders: int  # K, 0 for a model without auxiliary decoders
    # names that the network needs and the source lacks, as the source would name them
    missing: list[str] = field(default_factory=list)
    # names of the source that the network lacks; their weights are left out
    unexpected: list[str] = field(default_factory=list)

    @property
    def num_classes(self) -> int:
        """C, the number of classes; 0 for ImageNet weights of the backbone."""
        return len(self.state.get('decode_head.conv_seg.weight', ()))


def convert_file(source: str, target: str) -> Renamed:
    """Converts a checkpoint of the authors' code, or their ImageNet weights for `model.backbone`.

    If names are missing or unexpected, nothing is written.

    Raises:
        UserError: If the checkpoint is not one of the authors' code.
    """
    state = read_checkpoint(source)['state_dict']
    names = weights(state).keys()
    if {'prefix.conv1.weight', 'conv3.weight'} & names:  # ImageNet's alone
        renamed = backbone_to_mmseg(state)
    elif any(name.startswith(('encoder.', 'main_decoder.')) for name in names):
        renamed = to_project(state)
    else:
        expected = 'encoder, main_decoder and aux_decoders, or the layers of a ResNet-50'
        raise UserError(source, 'its weights have other names', expected)
    meta = {}
    if renamed.num_classes == _VOC_CLASSES:  # the public code supports VOC only
        meta['dataset_meta'] = dict(classes=tuple(get_classes('voc')), palette=get_palette('voc'))
    if not (renamed.missing or renamed.unexpected):
        write_atomic(target, checkpoint_bytes(dict(meta=meta, state_dict=renamed.state)))
    return renamed


def to_project(state: State) -> Renamed:
    """Renames weights of the public code to those of `CCTSegmentor` with the same network.

    They are `encoder.*`, `main_decoder.*` and `aux_decoders.*`, each with or without `module.`.
    """
    source = weights(state)
    renamed, missing = _rename(source, SHARED_NAMES)
    matches = (re.match(r'aux_decoders\.(\d+)\.', name) for name in source)
    num_decoders = 1 + max((int(match[1]) for match in matches if match), default=-1)
    expected = {*SHARED_NAMES}
    for ours, public in _AUXILIARY.items() if num_decoders else ():
        names = [f'aux_decoders.{index}.upsample.{public}' for index in range(num_decoders)]
        expected |= {*names}
        lacking = [name for name in names if name not in source]
        missing += lacking
        if not lacking:
            is_weight = public.endswith('weight')
            flat = [source[name].flatten(1) if is_weight else source[name] for name in names]
            renamed[ours] = torch.stack(flat)
    return Renamed(renamed, num_decoders, missing, [n for n in source if n not in expected])


def backbone_to_mmseg(state: State) -> Renamed:
    """Renames the authors' ImageNet weights to those of MMSeg's `ResNetV1c`; drops the classifier.

    They are `layer1.*` to `layer4.*` and the stem, with or without its `prefix.`.
    """
    source = {}
    for name, value in weights(state).items():
        if not name.startswith('fc.'):
            source[name if name.startswith(('prefix.', 'layer')) else f'prefix.{name}'] = value
    renamed, missing = _rename(source, BACKBONE_NAMES)
    return Renamed(renamed, 0, missing, [n for n in source if n not in BACKBONE_NAMES])


def _rename(source: State, names: Mapping[str, str]) -> tuple[dict[str, Tensor], list[str]]:
    renamed = {new: source[old] for old, new in names.items() if old in source}
    # Old versions of PyTorch did not count batches, and nothing depends on the count.
    missing = [n for n in names if n not in source and not n.endswith('num_batches_tracked')]
    return renamed, missing
