"""Loads checkpoints as data: a file never runs code.

A pickle is a program. mmengine loads one with `weights_only=True`, but if that is refused, it loads
again without; and its list of allowed names has `getattr`, through which a file reaches any
function. Here only a fixed list of types is allowed, and what is refused stays refused. mmengine's
loaders of all schemes are replaced through its own registry, so every way into a run is covered:
`--resume`, `load_from`, `init_cfg` and the tools.
"""

import argparse
import codecs
import datetime
import os
import pathlib
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

import numpy as np
import torch
from mmengine.dist import all_gather_object
from mmengine.fileio import get_file_backend
from mmengine.logging import HistoryBuffer
from mmengine.optim.scheduler.param_scheduler import OneCycleParamScheduler
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import (
    CheckpointLoader,
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    get_torchvision_models,
)
from mmengine.utils import digit_version

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line, one_line

__all__ = ['load_data']

CONNECT_TIMEOUT = 20  # seconds
_ZOOS = {
    'torchvision': get_torchvision_models,
    'modelzoo': get_torchvision_models,
    'open-mmlab': get_external_models,
    'openmmlab': get_external_models,
    'mmcls': get_mmcls_models,
}
# Since 2.6, `safe_globals` takes a type together with the name that files use for it.
_TORCH_TAKES_NAMES = digit_version(torch.__version__) >= digit_version('2.6')
# Messages of torch's unpickler about a name that is not allowed.
_REFUSED = re.compile(r'(?:GLOBAL|unrecognized function|but got) (<.*?>|\S+)')


def load_data(file: str | os.PathLike, name: str, map_location: Any = 'cpu') -> Any:
    """Loads what `torch.save` wrote and is data: tensors, numbers, text, and mmengine's log.

    Messages call the file `name`.
    """
    if not os.path.isfile(file):
        raise UserError(name, 'no such checkpoint file')
    # torch does not compare checksums: a flipped bit would be a weight like any other
    if (damage := find_damage(file)) is not None:
        raise UserError(name, f'cannot be read ({damage})', 'a whole file')
    try:
        if _TORCH_TAKES_NAMES:
            types = [(global_type, path) for path, global_type in _ALLOWED.items()]
            with torch.serialization.safe_globals(types):
                content = torch.load(file, map_location, weights_only=True)
        else:
            content = torch.load(file, map_location, pickle_module=_PICKLE, weights_only=False)
    except Exception as error:  # torch raises nearly anything if the file is not a checkpoint
        refused = _REFUSED.search(one_line(error))
        if isinstance(error, UnpicklingError) and refused:
            problem = f'refused: it names {refused[1]}, which may run code'
            expected = 'tensors, numbers and text (of a file that you trust, save its state_dict)'
            raise UserError(name, problem, expected) from None
        failure = f'cannot be read ({error_line(error, 120)})'
        raise UserError(name, failure, 'a whole file of torch.save') from error
    meta = content.get('meta') if isinstance(content, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get('config'), str):
        del meta['config']  # mmengine's `Runner.resume` would run it as Python
    return content


def find_damage(file: str | os.PathLike) -> str | None:
    """Compares a checkpoint with its checksums, which torch before 1.6 did not write."""
    with open(file, 'rb') as opened:
        start = opened.read(24)
        if start.startswith(b'\x80'):  # a pickle
            return None
        if not start.startswith(b'PK'):
            return f'begins with {start!r}, as no checkpoint does'
        try:
            with zipfile.ZipFile(opened) as archive:
                torn = archive.testzip()
        except Exception as error:  # also RuntimeError if a flipped bit says "encrypted"
            return f'damaged: {one_line(error)}'
    return None if torn is None else f'damaged: its entry {torn} does not have its checksum'


def register_safe_loaders() -> None:
    """Makes every scheme of mmengine's `CheckpointLoader` load nothing but data."""
    # its log names a loader by what follows `load_from_`
    for prefixes, loader in (
        ('', load_from_file),
        (('http://', 'https://', *(f'{zoo}://' for zoo in _ZOOS)), load_from_http),
        ((r'(\S+\:)?s3://', r'(\S+\:)?petrel://', 'pavi://'), load_from_storage),
    ):
        CheckpointLoader.register_scheme(prefixes, loader, force=True)


def address_of(checkpoint: str, prefix: str = '') -> str | None:
    """Returns the URL behind mmengine's short name, such as `open-mmlab://resnet50_v1c`, or a URL.

    For local files and other storage the result is None. A message begins with the prefix.
    """
    scheme, separator, name = checkpoint.partition('://')
    if separator and scheme in ('http', 'https'):
        return checkpoint
    if not separator or scheme not in _ZOOS:
        return None
    addresses = _ZOOS[scheme]()
    name = get_deprecated_model_names().get(name, name)
    if name not in addresses:
        problem = f'{prefix}{checkpoint} is not in the model zoo of the installed mmengine'
        raise UserError(f'{problem}; expected a name that is, an https address or a local file')
    return addresses[name]


def download(url: str, key: str, otherwise: str = '') -> Path:
    """Returns a file in torch's cache, downloaded if missing; a failure is an error of `key`."""
    target = Path(torch.hub.get_dir()) / 'checkpoints' / Path(urlparse(url).path).name
    if target.exists():
        return target
    try:
        # torch's own download has no timeout: it would wait for ever
        urlopen(url, timeout=CONNECT_TIMEOUT).close()
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(target))
    except OSError as error:
        problem = f'could not be downloaded ({one_line(error)})'
        remedy = f'fetch {url} elsewhere and put it at {target}{otherwise}'
        raise UserError(key, f'{problem}; {remedy}') from error
    return target


def load_from_file(filename: str, map_location: Any = None) -> Any:
    """Loads a local file."""
    return load_data(os.path.expanduser(filename), filename, map_location)


def load_from_http(filename: str, map_location: Any = None) -> Any:
    """Loads a file from torch's cache; a process of each machine downloads it if it is missing."""
    url, failure = address_of(filename), None
    assert url is not None  # holds for the schemes that this loader is registered for
    if os.environ.get('LOCAL_RANK', '0') == '0':
        try:
            download(url, filename)
        except UserError as error:
            failure = str(error)
    # The others wait here, and none goes on if a machine has no file.
    if failures := [*filter(None, all_gather_object(failure))]:
        raise UserError(failures[0])
    return load_alone(filename, map_location)


def load_alone(filename: str, map_location: Any = 'cpu') -> Any:
    """Loads a checkpoint in this process, while others may wait for it elsewhere."""
    if (url := address_of(filename)) is None:
        return CheckpointLoader.load_checkpoint(filename, map_location, logger='silent')
    content = load_data(download(url, filename), filename, map_location)
    # Older classifiers keep their backbone's weights under a prefix.
    strip = mmengine_checkpoint._process_mmcls_checkpoint
    return strip(content) if filename.startswith('mmcls://') else content


def load_from_storage(filename: str, map_location: Any = None) -> Any:
    """Loads an object of S3 or Ceph."""
    with get_file_backend(filename).get_local_path(filename) as file:
        return load_data(file, filename, map_location)


def _saved_method(owner: Any, name: str) -> Any:
    # pickle writes the methods in the state of these types as getattr(HistoryBuffer, 'mean')
    if name not in _SAVED_METHODS.get(owner, ()):
        raise UnpicklingError('Unsupported global: GLOBAL builtins.getattr')
    return getattr(owner, name)


def _number(dtype: np.dtype, *data: Any) -> Any:
    if dtype.hasobject:
        raise UnpicklingError('Unsupported global: GLOBAL numpy.object_')
    return _make_scalar(dtype, *data)


_make_scalar: Any = np.float64(0).__reduce__()[0]
_make_array: Any = np.zeros(0).__reduce__()[0]
_NUMPY_TYPES = {
    type(np.dtype(code)) for code in np.typecodes['AllInteger'] + np.typecodes['Float'] + '?'
}
_SAVED_METHODS: Mapping[type, tuple[str, ...]] = {
    HistoryBuffer: ('min', 'max', 'current', 'mean'),
    OneCycleParamScheduler: ('_annealing_cos', '_annealing_linear'),
}
# Arguments of a program and a date in `meta`, as in the files of MAE and DINO.
_NOTES = (argparse.Namespace, datetime.date, datetime.datetime, datetime.timedelta)
_ALLOWED: Mapping[str, Any] = {
    **{
        f'{cls.__module__}.{cls.__qualname__}': cls
        for cls in (*_NUMPY_TYPES, *_SAVED_METHODS, *_NOTES)
    },
    # a path of any system, in files of any Python
    **{
        f'{module}.{flavor}Path': getattr(pathlib, f'Pure{flavor.removeprefix("Pure")}Path')
        for module in ('pathlib', 'pathlib._local')
        for flavor in ('Posix', 'Windows', 'PurePosix', 'PureWindows')
    },
    'numpy.dtype': np.dtype,
    'numpy.ndarray': np.ndarray,
    'builtins.slice': slice,
    'builtins.set': set,
    'builtins.getattr': _saved_method,
    '_codecs.encode': codecs.encode,  # bytes, as pickles of numpy 1 have them
    # numpy 1 and 2 name their modules differently, and each reads the other's files
    **{
        f'{core}.multiarray.{name}': function
        for core in ('numpy.core', 'numpy._core')
        for name, function in (('scalar', _number), ('_reconstruct', _make_array))
    },
}


_InPython: Any = pickle._Unpickler  # the one in C has no opcodes to override


class _Unpickler(_InPython):
    """Unpickler that finds only torch's and mmengine's types, and leaves them as they are.

    Before torch 2.6, torch's own unpickler for `weights_only=True` cannot read mmengine's log.
    """

    def find_class(self, module: str, name: str) -> Any:
        module = {'__builtin__': 'builtins'}.get(module, module)
        allowed = {**torch._weights_only_unpickler._get_allowed_globals(), **_ALLOWED}
        if f'{module}.{name}' not in allowed:
            raise UnpicklingError(f'Unsupported global: GLOBAL {module}.{name}')
        return allowed[f'{module}.{name}']

    def load_build(self) -> None:
        """Sets the state of an object, but not of a type or function, which the process shares."""
        if callable(target := self.stack[-2]):
            raise UnpicklingError(f'Unsupported: state of GLOBAL {target.__name__}')
        super().load_build()

    dispatch = {**_InPython.dispatch, pickle.BUILD[0]: load_build}


# The parts of the module `pickle` that torch uses.
_PICKLE = SimpleNamespace(
    __name__='allowlisted',
    Unpickler=_Unpickler,
    load=lambda *args, **kwargs: _Unpickler(*args, **kwargs).load(),
)
