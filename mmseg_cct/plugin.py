"""The plugin: registers every component with MMSegmentation.

A config imports it:
`custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)`.
"""

from .stack import StackError, check_stack, explain_import_failure, import_formatter

# First, because the imports below fail with a long traceback on a stack that does not fit.
check_stack()
import_formatter()

try:
    from .utils.log import silence_misleading_lines

    silence_misleading_lines()
    from . import datasets, engine, models, preflight
    from .config.load import dump_configs_whole, register_packages
    from .datasets.files.images import set_up_pillow
    from .engine.safe_loading import register_safe_loaders
    from .engine.visualization.backends import save_under_any_name
    from .utils.processes import end_workers_that_lose_a_batch
except RuntimeError as error:
    explanation = explain_import_failure(error)
    if explanation is None:
        raise
    raise StackError(explanation) from None

__all__ = [
    'datasets',
    'engine',
    'models',
    'preflight',
    'setup',
]


def setup() -> None:
    """Makes mmengine load checkpoints as data and find the configs of installed packages.

    It also keeps Pillow from starting Ghostscript for PostScript images, and saves pictures without
    OpenCV, which fails on names that are not UTF-8. Loading workers that lose a batch end, and
    configs are dumped atomically.

    Importing this module calls it; a second call changes nothing.
    """
    register_safe_loaders()
    register_packages()
    set_up_pillow()
    save_under_any_name()
    end_workers_that_lose_a_batch()
    dump_configs_whole()


setup()
