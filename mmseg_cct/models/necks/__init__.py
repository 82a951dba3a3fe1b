from .concat_neck import ConcatNeck
from .psp_neck import PSPNeck

__all__ = ['ConcatNeck', 'PSPNeck']
