"""Supported versions of the dependencies, what differs between them, and a remedy.

setup.py runs this file for `MAINTAINED` before anything is installed: import only the standard
library at module level.
"""

import importlib
import re
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

# onedl-*: the maintained distributions of OpenMMLab's libraries. The demo trains with torch 2.4;
# the tests run with 2.14 and 2.15, and some of them fail with 2.9 and older.
MAINTAINED = {
    'torch': '>=2.4,<3',
    'onedl-mmengine': '>=0.10.12,<0.11',
    'onedl-mmcv': '>=2.3.6,<2.4',
    'onedl-mmsegmentation': '>=1.4.2,<1.5',
}
# The original distributions, the second choice: their last releases and what those still run on.
ORIGINAL = {
    'torch': '>=2.1,<2.6',
    'numpy': '<2',
    'mmengine': '>=0.10,<0.11',
    'mmcv': '>=2.0.0,<2.2.0',
    'mmsegmentation': '>=1.2.2,<1.3',
}
# mmcv with compiled operators has other names too: mmcv-full, onedl-mmcv-cu128-torch2-8.
_OPENMMLAB = re.compile(r'(onedl-)?(mmengine|mmsegmentation|mmpretrain|mmcv(-.+)?)')


class StackError(ImportError):
    """The installed distributions do not fit; the message is one line with the remedy."""


def find_problem() -> str | None:
    """Names the first problem of the installed distributions and the command that fixes it."""
    versions = _openmmlab_versions()
    maintained = [name for name in versions if name.startswith('onedl-')]
    required = ORIGINAL if versions and not maintained else MAINTAINED
    # the distribution of each library, of mmcv rather the build with operators
    kept = {re.sub('mmcv-.*', 'mmcv', name): name for name in maintained or versions}
    removed = [name for name in versions if name not in kept.values()]
    if removed:
        # They install the same modules, so removing one breaks the other's files too.
        again = ' '.join(f"'{name}{required.get(name, '')}'" for name in kept.values())
        return (
            f'mmseg_cct: {", ".join(removed)} and {", ".join(kept.values())} are installed '
            f'together and overwrite or miss each other; run: pip uninstall -y '
            f'{" ".join(removed)} && pip install --force-reinstall --no-deps {again}'
        )
    # Imported here: setup.py runs this file where only setuptools is sure to be installed.
    from packaging.specifiers import SpecifierSet

    for name, bounds in required.items():
        provider = kept.get(name, name)
        version = _version(provider)
        # prereleases: NVIDIA's containers have some
        if version is None or not SpecifierSet(bounds).contains(version, prereleases=True):
            installed = f'but {version} is installed' if version else 'which is not installed'
            removal = '' if provider == name else f'pip uninstall -y {provider} && '
            return (
                f'mmseg_cct: needs {name}{bounds}, {installed}; '
                f"run: {removal}pip install '{name}{bounds}'"
            )
    return None


def distributions_to_overwrite() -> list[str]:
    """Names the installed distributions whose files an installation of `MAINTAINED` replaces."""
    return [name for name in _openmmlab_versions() if not re.fullmatch('onedl-[a-z]+', name)]


def import_formatter() -> None:
    """Imports yapf, which mmengine writes configs with, before mmengine does.

    The first import after an installation creates a file that is empty for a moment. Another
    process that reads it then, such as a rank of the same training, fails, so this tries up to four
    times.
    """
    for patience in (0.1, 1.0, 5.0, 0.0):  # seconds
        try:
            importlib.import_module('yapf.yapflib.yapf_api')
            return
        except EOFError:
            if not patience:
                raise
            time.sleep(patience)


def take_channel_conversion(preprocessor: Any) -> bool:
    """Takes the swap of channels over from MMSeg's preprocessor, whose name for it has changed."""
    names = ('_channel_conversion', 'channel_conversion')  # the second until 1.2.2
    swaps = next(getattr(preprocessor, name) for name in names if hasattr(preprocessor, name))
    preprocessor._channel_conversion = preprocessor.channel_conversion = False
    return swaps


def compilation_test() -> Callable[[], bool]:
    """Returns torch's own test of whether a call is compiled; torch 2.1 has another name for it."""
    import torch

    return getattr(torch.compiler, 'is_compiling', None) or torch._dynamo.is_compiling


def explain_import_failure(error: BaseException) -> str | None:
    """Says how to fix a failed import of torchvision or mmcv; None for other errors."""
    if 'mmcv._ext' in str(error):  # MMSegmentation 1.2.2 imports them, whatever the model
        return (
            'mmseg_cct: mmcv was built without its operators, which mmsegmentation needs; run: '
            "pip install --force-reinstall mmcv==2.1.0 with OpenMMLab's wheels (docs/install.md)"
        )
    if 'torchvision::nms does not exist' not in str(error):
        return None
    torch, torchvision = _version('torch'), _version('torchvision')
    # Given both names, pip picks the torchvision release made for this torch. Builds for one device
    # ('+cpu', '+cu126') have an index of their own.
    release, _, build = (torch or '').partition('+')
    index = f' --index-url https://download.pytorch.org/whl/{build}' if build else ''
    return (
        f'mmseg_cct: torchvision {torchvision} does not match torch {torch}: its compiled '
        'operators do not load with this torch build; '
        f'run: pip install --force-reinstall torch=={release} torchvision{index}'
    )


def _openmmlab_versions() -> dict[str, str]:
    """Versions of the installed distributions of OpenMMLab's libraries, by normalized name."""
    installed = (distribution.name or '' for distribution in metadata.distributions())
    names = {re.sub('[-_.]+', '-', name).lower() for name in installed}
    return {name: metadata.version(name) for name in sorted(names) if _OPENMMLAB.fullmatch(name)}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
