"""Start of a tool, after its command line is parsed."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmseg_cct.config.shipped import find_config, require_bases
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import choose_threads

from .arguments import set_ranks
from .errors import user_errors_as_one_line


@contextmanager
def running(args: argparse.Namespace) -> Iterator[None]:
    """Runs the body of a tool with registered components, safe loading and one-line errors.

    The body imports what it needs. `args.cfg_options` is parsed in place and gets `method` and
    `labels`. A wrong launcher or device is an error, too.
    """
    with user_errors_as_one_line():
        if hasattr(args, 'launcher'):
            set_ranks(args)
        if hasattr(args, 'cfg_options'):
            # what needs no torch, whose import takes seconds
            for config in (getattr(args, name, None) for name in ('config', 'student')):
                if config is not None:
                    require_bases(find_config(config))
        choose_threads()
        greet()
        import mmseg_cct.plugin  # noqa: F401

        if hasattr(args, 'cfg_options'):
            args.cfg_options = _read_settings(args.cfg_options)
            chosen = {key: getattr(args, key, None) for key in ('method', 'labels')}
            args.cfg_options |= {key: value for key, value in chosen.items() if value is not None}
        _require_device(getattr(args, 'device', None))
        yield


def greet() -> None:
    """Tells a user at a terminal what takes the first seconds."""
    if 'torch' not in sys.modules and sys.stderr.isatty() and os.environ.get('RANK', '0') == '0':
        print('loading PyTorch and MMSegmentation ...', file=sys.stderr, flush=True)


def _read_settings(texts: list[str]) -> dict[str, Any]:
    from mmengine.config import DictAction

    settings: dict[str, Any] = {}
    for text in texts:
        one = argparse.Namespace()
        try:
            DictAction([], 'settings')(argparse.ArgumentParser(), one, [text])
        except (ValueError, IndexError, AssertionError, RecursionError):
            raise UserError(
                f'--cfg-options {text}', '', 'a value or a list; a dict key by key'
            ) from None
        settings |= one.settings
    return settings


def _require_device(device: str | None) -> None:
    import torch

    kind, _, index = (device or 'cpu').partition(':')
    if kind == 'mps' and not torch.backends.mps.is_available():
        raise UserError(f'--device {device}', 'this machine has none; leave --device out')
    if kind == 'cuda' and int(index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        if not count:
            raise UserError(f'--device {device}', 'this machine has no GPU; leave --device out')
        raise UserError(
            f'--device {device}', f'this machine has {count} GPUs', f'cuda:0 to cuda:{count - 1}'
        )
