"""Backbones, and models built on one, for the config of a folder."""

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
