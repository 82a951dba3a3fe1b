from .psp_neck import PSPNeck

__all__ = ['PSPNeck']
