"""Conversion, publication and export of checkpoints."""

from .convert import Conversion, convert_file
from .public_names import SHARED_NAMES, is_public, to_project, to_public, without_module_prefix

__all__ = [
    'SHARED_NAMES',
    'Conversion',
    'convert_file',
    'is_public',
    'to_project',
    'to_public',
    'without_module_prefix',
]
