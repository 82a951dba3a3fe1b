from .pixel_shuffle_head import PixelShuffleHead

__all__ = ['PixelShuffleHead']
