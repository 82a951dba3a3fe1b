"""Loads checkpoints as data: a file never runs code.

A pickle is a program. mmengine loads one with `weights_only=True`, but if that is refused, it loads
again without; and its list of allowed names has `getattr`, through which a file reaches any
function. Here only a fixed list of types is allowed, and what is refused stays refused. mmengine's
loaders of all schemes are replaced through its own registry, so every way into a run is covered:
`--resume`, `load_from`, `init_cfg` and the tools.
"""

import contextlib
import io
import os
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
from mmengine.dist import barrier, get_rank
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

from mmseg_cct.engine.checkpoint_content import require_plain_tensors
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line, one_line

CONNECT_TIMEOUT = 20  # seconds; torch's own download waits for ever
_ZOOS = {
    'torchvision': get_torchvision_models,
    'modelzoo': get_torchvision_models,
    'open-mmlab': get_external_models,
    'openmmlab': get_external_models,
    'mmcls': get_mmcls_models,
}
# Since 2.6, `safe_globals` takes a type together with the name that files use for it.
_TORCH_TAKES_NAMES = digit_version(torch.__version__) >= digit_version('2.6')
# First bytes of an archive, and of a pickle written by torch before 1.6.
_STARTS = (b'PK', b'\x80')
# Messages of torch's unpickler about a name that is not allowed.
_REFUSED = re.compile(
    r'GLOBAL (\S+)|unrecognized function (.*?)(?: which|\.|$)|allowlisted via .* but got (.*)'
)


def load_data(file: str | os.PathLike | io.BytesIO, name: str, map_location: Any = 'cpu') -> Any:
    """Loads what `torch.save` wrote and is data: tensors, numbers, text, and mmengine's log.

    Messages call the file `name`.
    """
    if not isinstance(file, io.BytesIO) and not os.path.isfile(file):
        raise UserError(name, 'no such checkpoint file')
    try:
        # torch does not compare checksums: a flipped bit would be a weight like any other
        damage = find_damage(file)
        if damage is not None:
            raise UserError(name, f'cannot be read ({damage})', 'a whole file')
        content = _load(file, map_location)
        meta = content.get('meta') if isinstance(content, dict) else None
        if isinstance(meta, dict) and isinstance(meta.get('config'), str):
            del meta['config']  # mmengine's `Runner.resume` would run it as Python
        require_plain_tensors(content, name)
        return content
    except UserError:
        raise
    except Exception as error:  # torch raises nearly anything if the file is not a checkpoint
        refused = _REFUSED.search(one_line(error))
        if isinstance(error, UnpicklingError) and refused:
            what = next(filter(None, refused.groups()))
            raise UserError(
                name,
                f'refused: it names {what}, which may run code',
                'a checkpoint of tensors, numbers and text (of a file that you trust, save its '
                'state_dict alone)',
            ) from None
        found = f'cannot be read ({error_line(error, 120)})'
        expected = 'a whole file that torch.save or a training wrote'
        raise UserError(name, found, expected) from error


def find_damage(file: str | os.PathLike | io.BytesIO) -> str | None:
    """Compares a checkpoint with its checksums, which torch before 1.6 did not write."""
    if not isinstance(file, io.BytesIO) and not os.path.isfile(file):
        return 'no such file'
    with contextlib.ExitStack() as stack:
        opened = file if isinstance(file, io.BytesIO) else stack.enter_context(open(file, 'rb'))
        start = opened.read(24)
        opened.seek(0)
        if not start:
            return 'empty'
        if not start.startswith(_STARTS):
            return f'begins with {start!r}, as no checkpoint does'
        if not start.startswith(b'PK'):
            return None
        try:
            if not zipfile.is_zipfile(opened):  # the index is at the end of the file
                return f'not a whole checkpoint, {opened.seek(0, os.SEEK_END)} bytes'
            with zipfile.ZipFile(opened) as archive:
                torn = archive.testzip()
                if not any(name.endswith('data.pkl') for name in archive.namelist()):
                    return 'an archive without data.pkl, so no checkpoint'
        except Exception as error:  # also RuntimeError if a flipped bit says "encrypted"
            return f'damaged: {one_line(error)}'
        finally:
            opened.seek(0)
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


def address_of(checkpoint: str, where: str = '') -> str | None:
    """Returns the URL behind mmengine's short name, such as `open-mmlab://resnet50_v1c`, or a URL.

    For local files and other storage the result is None. A message begins with `where`.
    """
    scheme, separator, name = checkpoint.partition('://')
    if separator and scheme in ('http', 'https'):
        return checkpoint
    if not separator or scheme not in _ZOOS:
        return None
    addresses = _ZOOS[scheme]()
    name = get_deprecated_model_names().get(name, name)
    if name not in addresses:
        raise UserError(
            f'{where}{checkpoint} is not in the model zoo of the installed mmengine; expected a '
            'name that is, an https address or a local file'
        )
    return addresses[name]


def cached_file(url: str) -> Path:
    """Returns where torch's cache keeps a downloaded file."""
    return Path(torch.hub.get_dir()) / 'checkpoints' / Path(urlparse(url).path).name


def download(url: str, place: str, otherwise: str = '') -> None:
    """Downloads a file into torch's cache, if it is missing; a failure is an error of `place`."""
    target = cached_file(url)
    if target.exists():
        return
    try:
        urlopen(url, timeout=CONNECT_TIMEOUT).close()
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(target))
    except OSError as error:
        raise UserError(
            place,
            f'could not be downloaded ({one_line(error)}); fetch {url} elsewhere and put it '
            f'at {target}{otherwise}',
        ) from error


def load_from_file(filename: str, map_location: Any = None) -> Any:
    """Loads a local file."""
    return load_data(os.path.expanduser(filename), filename, map_location)


def load_from_http(filename: str, map_location: Any = None) -> Any:
    """Loads a file from torch's cache; rank 0 downloads it if it is missing."""
    url = address_of(filename)
    assert url is not None  # holds for the schemes that this loader is registered for
    if get_rank() == 0:
        download(url, filename)
    barrier()
    content = load_data(cached_file(url), filename, map_location)
    # Older classifiers keep their backbone's weights under a prefix.
    strip = mmengine_checkpoint._process_mmcls_checkpoint
    return strip(content) if filename.startswith('mmcls://') else content


def load_from_storage(filename: str, map_location: Any = None) -> Any:
    """Loads an object of S3 or Ceph."""
    data = get_file_backend(filename).get(filename)
    return load_data(io.BytesIO(data), filename, map_location)


def _load(file: Any, map_location: Any) -> Any:
    if not _TORCH_TAKES_NAMES:
        return torch.load(file, map_location, pickle_module=_PICKLE, weights_only=False)
    with torch.serialization.safe_globals([(kind, name) for name, kind in _ALLOWED.items()]):
        return torch.load(file, map_location, weights_only=True)


def _saved_method(owner: Any, name: str) -> Any:
    # pickle writes the methods in the state of these types as getattr(HistoryBuffer, 'mean')
    methods = next((names for kind, names in _SAVED_METHODS.items() if kind is owner), ())
    if name not in methods:
        raise UnpicklingError('Unsupported global: GLOBAL builtins.getattr')
    return getattr(owner, name)


def _number(dtype: np.dtype, *data: Any) -> Any:
    if dtype.hasobject:
        raise UnpicklingError('Unsupported global: GLOBAL numpy.object_')
    return _make_scalar(dtype, *data)


_make_scalar: Any = np.float64(0).__reduce__()[0]
_make_array: Any = np.zeros(0).__reduce__()[0]
_DTYPES = {
    type(np.dtype(code)) for code in np.typecodes['AllInteger'] + np.typecodes['Float'] + '?'
}
_SAVED_METHODS: Mapping[type, tuple[str, ...]] = {
    HistoryBuffer: ('min', 'max', 'current', 'mean'),
    OneCycleParamScheduler: ('_annealing_cos', '_annealing_linear'),
}
_ALLOWED: Mapping[str, Any] = {
    **{f'{kind.__module__}.{kind.__qualname__}': kind for kind in (*_DTYPES, *_SAVED_METHODS)},
    'numpy.dtype': np.dtype,
    'numpy.ndarray': np.ndarray,
    'builtins.slice': slice,
    'builtins.getattr': _saved_method,
    # numpy 1 and 2 name their modules differently, and each reads the other's files
    **{
        f'{core}.multiarray.{name}': function
        for core in ('numpy.core', 'numpy._core')
        for name, function in (('scalar', _number), ('_reconstruct', _make_array))
    },
}


class _Unpickler(pickle.Unpickler):
    """Unpickler that finds only torch's and mmengine's types.

    Before torch 2.6, torch's own unpickler for `weights_only=True` cannot read mmengine's log.
    """

    def find_class(self, module: str, name: str) -> Any:
        module = {'__builtin__': 'builtins'}.get(module, module)
        allowed = {**torch._weights_only_unpickler._get_allowed_globals(), **_ALLOWED}
        if f'{module}.{name}' not in allowed:
            raise UnpicklingError(f'Unsupported global: GLOBAL {module}.{name}')
        return allowed[f'{module}.{name}']


def _unpickle(*args: Any, **kwargs: Any) -> Any:
    return _Unpickler(*args, **kwargs).load()


# The parts of the module `pickle` that torch uses.
_PICKLE = SimpleNamespace(__name__='allowlisted', Unpickler=_Unpickler, load=_unpickle)
