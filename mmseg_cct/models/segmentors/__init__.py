from .cct import CCTSegmentor

__all__ = ['CCTSegmentor']
