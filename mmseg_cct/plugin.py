"""The plugin: registers every component with MMSegmentation.

A config imports it:
`custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)`.

The import fills registries and replaces the loader of checkpoints; nothing else in the process
changes. The tools set up their own process in `mmseg_cct.cli.start`.
"""

from .stack import StackError, explain_import_failure, find_problem, import_formatter

# First, because the imports below fail with a long traceback on a stack that does not fit.
if (problem := find_problem()) is not None:
    raise StackError(problem)
import_formatter()

try:
    from . import datasets, engine, models, preflight
    from .config.load import register_packages
    from .datasets import components as _data  # noqa: F401
    from .engine.safe_loading import register_safe_loaders
except (RuntimeError, ModuleNotFoundError) as error:
    explanation = explain_import_failure(error)
    if explanation is None:
        raise
    raise StackError(explanation) from None

__all__ = ['datasets', 'engine', 'models', 'preflight']

# Checkpoints are loaded as data; mmengine finds the configs of installed packages.
register_safe_loaders()
register_packages()
