"""Start of a tool, after its command line is parsed."""

import argparse
import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import chain
from multiprocessing.queues import Queue
from typing import Any

from mmseg_cct.config.shipped import find_config, find_run
from mmseg_cct.config.walk import as_list
from mmseg_cct.errors import UserError

from .arguments import InputPath, set_ranks
from .errors import hand_over_error, user_errors_as_one_line

# Of mmcv and mmseg: installing the other mmcv would break the stack, every config without --show
# has an idle hook, and two classes have two channels here. And of torch: TF32 is for the user to
# choose; forward-mode derivatives import a deprecated part of torch.
_WARNINGS = (
    'Fail to import ``MultiScaleDeformableAttention``',
    'The draw is False',
    'For binary segmentation, we suggest',
    'TensorFloat32 tensor cores for float32',
    r'`torch\.jit\.script`',
)


@contextmanager
def running(args: argparse.Namespace) -> Iterator[None]:
    """Runs the body of a tool with checked arguments and one-line errors, without torch.

    The body imports what it needs, and calls `register` first if that is a network. `args.options`
    is parsed in place and gets `method` and `labels`. A wrong launcher or a file that is not there
    is an error.
    """
    with user_errors_as_one_line():
        if hasattr(args, 'launcher'):
            set_ranks(args)
        if hasattr(args, 'options') and getattr(args, 'config', None) is not None:
            find_config(args.config)
        if hasattr(args, 'run'):
            find_run(args.run, getattr(args, 'checkpoint', None))
        for path in chain.from_iterable(map(as_list, vars(args).values())):
            if isinstance(path, InputPath) and '://' not in path and not os.path.exists(path):
                raise UserError(path, 'no such file or folder')
        if hasattr(args, 'options'):
            args.options = _read_settings(args.options)
            overlays = {key: getattr(args, key, None) for key in ('method', 'labels')}
            args.options |= {key: value for key, value in overlays.items() if value is not None}
        _set_up_process()
        yield


def register() -> None:
    """Registers the components and loads MMSegmentation, which takes seconds."""
    # mmseg prints a debug message about a commercial data set, which is not needed
    with redirect_stdout(io.StringIO()):
        import mmseg_cct.plugin  # noqa: F401


def _set_up_process() -> None:
    """Chooses how threads wait, silences misleading lines, and lets Pillow open large images.

    It comes before torch is imported. Variables that the user has set win.
    """
    # By default, waiting threads spin, which takes cores from data loaders and other programs.
    os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')
    # spawned loaders and launchers import nothing from the current folder (Python 3.11 or newer)
    os.environ['PYTHONSAFEPATH'] = '1'
    # libtiff's lines about tags that OpenCV does not know, such as a georeference
    os.environ.setdefault('OPENCV_LOG_LEVEL', 'FATAL')
    for start in _WARNINGS:
        warnings.filterwarnings('ignore', message=start)
    # as `concurrent.futures` does for its queues
    Queue._on_queue_feeder_error = hand_over_error  # type: ignore[attr-defined]
    # every loader warns at each start of its workers
    warnings.filterwarnings('once', message='This DataLoader will create', category=UserWarning)
    from PIL import EpsImagePlugin, Image

    EpsImagePlugin.gs_binary = False  # else Pillow starts Ghostscript for a PostScript image
    Image.MAX_IMAGE_PIXELS = 2**29  # as OpenCV: Pillow warns from there and refuses twice that
    if os.path.isfile('matplotlibrc'):
        _import_matplotlib_elsewhere()


def _import_matplotlib_elsewhere() -> None:
    """Imports matplotlib where no `matplotlibrc` lies: it reads that of the current folder first.

    Such a file names code that is run, and there is no setting to ignore it.
    """
    work_folder = os.getcwd()
    os.chdir(os.path.dirname(__file__))
    import matplotlib as mpl  # noqa: F401

    os.chdir(work_folder)


def _read_settings(texts: list[str]) -> dict[str, Any]:
    from mmengine.config import DictAction

    settings: dict[str, Any] = {}
    for text in texts:
        parsed = argparse.Namespace()
        try:
            DictAction([], 'settings')(argparse.ArgumentParser(), parsed, [text])
        except (ValueError, IndexError, AssertionError, RecursionError):
            expected = 'a value or a list; a dict key by key'
            raise UserError(f'--cfg-options {text}', '', expected) from None
        settings |= parsed.settings
    return settings
