"""Cross-consistency training for MMSegmentation.

This import is light and changes nothing. `mmseg_cct.plugin` registers the components.
"""

from .version import __version__

__all__ = ['__version__']
