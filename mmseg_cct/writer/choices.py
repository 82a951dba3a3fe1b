"""What a user may choose for the config of a folder; needs no torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mmseg_cct.errors import UserError


class Backbone(NamedTuple):
    """An encoder, or a model built on one."""

    title: str
    model: str  # its file in configs/_base_/models
    stride: int  # of z
    schedule: str  # of its fine-tuning, a file in configs/_base_/schedules
    # whether training crops are half as wide and high as the images, so that a step takes a quarter
    # of the time: for machines without a GPU
    halves_crops: bool = False

    def require_multiples(self, option: str, sides: tuple[int, int] | None) -> None:
        """Rejects width and height that are no multiples of the stride."""
        if sides and any(side < self.stride or side % self.stride for side in sides):
            width, height = (max(-(-side // self.stride), 1) * self.stride for side in sides)
            expected = f'multiples of {self.stride}, the stride of the network, such as '
            raise UserError(f'{option} {sides[0]}x{sides[1]}', '', f'{expected}{width}x{height}')


BACKBONES = {
    'mbv2': Backbone('MobileNetV2', 'cct_mbv2-jpu', 8, 'adamw_small', halves_crops=True),
    'r18': Backbone('ResNet-18', 'cct_r18-d8', 8, 'sgd_poly'),
    'r50': Backbone('ResNet-50', 'cct_r50-d8', 8, 'sgd_poly'),
    'regnety': Backbone("timm's RegNetY-3.2GF", 'cct_timm-regnety', 8, 'sgd_poly'),
    'convnext-t': Backbone('ConvNeXt-T', 'cct_convnext-t', 8, 'adamw'),
    'swin-t': Backbone('Swin-T', 'cct_swin-t', 16, 'adamw'),
    'mit-b0': Backbone('MiT-B0', 'cct_mit-b0', 16, 'adamw'),
    'mit-b2': Backbone('MiT-B2', 'cct_mit-b2', 16, 'adamw'),
    'deeplabv3plus-r50': Backbone(
        'DeepLabV3+ on ResNet-50', 'cct_deeplabv3plus-r50-d8', 4, 'sgd_poly'
    ),
    'deeplabv3plus-mbv2': Backbone(
        'DeepLabV3+ on MobileNetV2', 'cct_deeplabv3plus-mbv2', 4, 'adamw_small', halves_crops=True
    ),
    'upernet-swin-t': Backbone('UPerNet on Swin-T', 'cct_upernet-swin-t', 4, 'adamw'),
    'segformer-mit-b0': Backbone('SegFormer on MiT-B0', 'cct_segformer-mit-b0', 4, 'adamw'),
    'segformer-mit-b2': Backbone('SegFormer on MiT-B2', 'cct_segformer-mit-b2', 4, 'adamw'),
    'segnext-t': Backbone('SegNeXt on MSCAN-T', 'cct_segnext-t', 8, 'adamw'),
    'dinov2-s': Backbone('DINOv2 ViT-S/14', 'cct_dinov2-s', 16, 'adamw_vit'),
    'dinov2-s-frozen': Backbone('DINOv2 ViT-S/14, frozen', 'cct_dinov2-s-frozen', 16, 'adamw_vit'),
    'dinov2-b': Backbone('DINOv2 ViT-B/14', 'cct_dinov2-b', 16, 'adamw_vit'),
    'dinov3-s': Backbone('DINOv3 ViT-S/16', 'cct_dinov3-s', 16, 'adamw_vit'),
}


class Preset(NamedTuple):
    """How long a training is, and how much a step costs."""

    title: str
    longest: int  # side that images are resized to, if they are larger, in pixels
    batch_size: int  # pairs of a labelled and an unlabelled image
    iters: int


PRESETS = {
    'quick': Preset('a first look, minutes on a CPU', 256, 4, 600),
    'normal': Preset('an evening on a CPU', 512, 8, 6000),
    'long': Preset('where the gain of CCT was largest', 512, 8, 12000),
}


@dataclass(frozen=True)
class Choices:
    """What a user may choose; None leaves it to the folder or the preset."""

    classes: Sequence[str] | None = None  # in the order of their ids; else those of `classes.json`
    context: Sequence[str] | None = None  # classes that are not objects; else the background
    backbone: str = 'mbv2'  # a key of `BACKBONES`
    method: str = 'cct-strong'
    preset: str = 'normal'  # a key of `PRESETS`
    # Width and height that images are resized into, scaled by 0.5 to 2 in training. Where the
    # default would lose the objects of a class, crops are trained on and windows predicted.
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None  # of the training; else `size`, for MobileNetV2 half of it
    iters: int | None = None
    batch_size: int | None = None
    image_suffix: str | None = None  # end of the images' names that their masks do not have
    mask_suffix: str = '.png'
    channels: Sequence[int] | None = None  # to load, counted from 0; else all except opacity
    bits: int | None = None  # of the images' values; else as many as the values need
    weights: str | None = None  # file of the backbone's weights; else those of the model zoo
    from_scratch: bool = False  # whether to start from random weights
    force: bool = False  # whether to overwrite files

    @property
    def suffixes(self) -> dict[str, str]:
        """Those that the user has chosen, as arguments of `FolderDataset`."""
        image = dict(image_suffix=self.image_suffix) if self.image_suffix else {}
        return image | (dict(mask_suffix=self.mask_suffix) if self.mask_suffix != '.png' else {})


def plain_name(data: str) -> str:
    """Names a folder's config: the folder's, with dashes for spaces and special characters."""
    return re.sub(r'[^\w.-]+', '-', Path(data).resolve().name)


def check_choices(data: str, choices: Choices) -> None:
    """Checks what can be checked before torch is imported, which takes seconds.

    Raises:
        UserError: There is no such folder or file, or a size is no multiple of the stride.
    """
    if not Path(data).is_dir():
        raise UserError(data, 'no such folder', 'a folder with images and masks')
    has_masks, table = Path(data, 'masks').is_dir(), Path(data, 'classes.json')
    if has_masks and choices.classes is None and not table.is_file():  # an export has names
        raise UserError('--classes', 'missing', f'the class names, or {table}')
    BACKBONES[choices.backbone].require_multiples('--size', choices.size)
    BACKBONES[choices.backbone].require_multiples('--crop', choices.crop)
    if choices.weights and not Path(choices.weights).is_file():
        raise UserError('--weights', f'{choices.weights} is not a file', 'a checkpoint')
