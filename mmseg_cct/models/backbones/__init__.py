from .multi_channel import MultiChannelBackbone
from .timm_vit import TimmViT

__all__ = ['MultiChannelBackbone', 'TimmViT']
