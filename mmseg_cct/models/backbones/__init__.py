from .timm_vit import TimmViT

__all__ = ['TimmViT']
