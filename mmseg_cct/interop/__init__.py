"""Exchange with the authors' public code."""

from .convert import Conversion, convert_file
from .public_names import SHARED_NAMES, to_project, to_public

__all__ = ['SHARED_NAMES', 'Conversion', 'convert_file', 'to_project', 'to_public']
