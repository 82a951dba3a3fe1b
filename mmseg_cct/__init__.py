"""Cross-consistency training for MMSegmentation.

Importing this package registers every component, so a config needs one line:
`custom_imports = dict(imports=['mmseg_cct'], allow_failed_imports=False)`.
"""

from .stack import check_stack, explain_import_failure, import_formatter
from .version import __version__

# First of all: the imports below fail with a long traceback on a stack that does not fit.
check_stack()
import_formatter()

try:
    from .utils.quiet import silence_misleading_lines

    silence_misleading_lines()
    from mmseg_cct.config.shipped import register_packages

    from . import datasets, engine, evaluation, models, visualization
    from .engine.safe_loading import register_safe_loaders
except RuntimeError as error:
    explanation = explain_import_failure(error)
    if explanation is None:
        raise
    raise ImportError(explanation) from None

register_safe_loaders()
register_packages()

__all__ = ['__version__', 'datasets', 'engine', 'evaluation', 'models', 'visualization']
