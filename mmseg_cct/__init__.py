"""Cross-consistency training for MMSegmentation.

This import is light and changes nothing. `mmseg_cct.plugin` registers the components.
"""

from .version import __version__

__all__ = ['__version__', 'bases']


def bases(*names: str) -> list[str]:
    """Finds installed configs for the `_base_` of a config in another project.

    mmengine evaluates the expression, so this works with every launcher:
    `_base_ = __import__('mmseg_cct').bases('mmseg_cct::cct/cct_r50_voc_1464.py')`.

    Args:
        *names: `mmseg_cct::` or `mmseg::` and a path below that package's configs.

    Returns:
        The paths of the files.

    Raises:
        ImportError: A package is not installed.
    """
    # here, because `python -m` would import them from the current folder first
    from importlib.util import find_spec
    from pathlib import Path

    paths = []
    for name in names:
        package, _, path = name.partition('::')
        spec = find_spec(package)  # without importing it
        if spec is None or not spec.submodule_search_locations:
            raise ImportError(f'{name}: no package {package}; expected mmseg_cct:: or mmseg::')
        # where mmengine looks, too
        folder = Path(spec.submodule_search_locations[0], '.mim', 'configs')
        if not folder.is_dir():  # a checkout that is not installed
            folder = folder.parents[2] / 'configs'
        paths.append(str(folder / path))
    return paths
