"""Builds and calls `native_chain.cpp`, the auxiliary decoders as one fused kernel for a CPU.

The machine's C++ compiler builds the kernel for one stride and numbers of channels. This takes
seconds and happens once: libraries are kept with their hashes in the user's cache directory
(`$XDG_CACHE_HOME/mmseg_cct`), which only the user can access. If anything fails, training continues
in PyTorch.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.logging import print_log
from torch import Tensor

from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import end_session
from mmseg_cct.utils.text import one_line

from .chunking import Chunking
from .stacked_decoders import Chain

SOURCE = Path(__file__).with_suffix('.cpp')
FLAGS = ['-O3', '-march=native', '-std=c++17', '-shared', '-fPIC', '-pthread']
FLAGS += ['-fno-math-errno', '-fno-trapping-math']  # results do not change
# Computed in float32: 16-bit features come from autocast.
TYPES = (torch.float32, torch.bfloat16, torch.float16)
TIME_LIMIT = 300  # seconds that the compiler may take


class _Targets(ctypes.Structure):
    _fields_ = [
        ('seg_logits', ctypes.c_void_p),
        ('maps', ctypes.c_void_p * 3),
        ('agreeing', ctypes.c_void_p),
        ('factors', ctypes.c_float * 2),
    ]


class NativeChain:
    """The kernel for chains of one shape; tensors are float32, contiguous and on the CPU."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        sizes, pointer = [ctypes.c_int64] * 3, ctypes.c_void_p
        self._library.native_losses.argtypes = [*sizes, *[pointer] * 5]
        self._library.native_fisher.argtypes = [*sizes, *[pointer] * 3]
        # number of positions that a thread processes at once
        self.tile = ctypes.c_int.in_dll(self._library, 'native_tile').value

    def losses(
        self,
        features: Tensor,
        chain: Chain,
        seg_logits: Tensor,
        maps: Sequence[Tensor | None],
        factors: Sequence[float],
    ) -> tuple[tuple[Tensor, list[Tensor], list[Tensor]], Tensor, Tensor]:
        """Computes Σ factor · Σ_k Σ_pixel weight · distance for two distances, and its gradients.

        Args:
            features: `(K, B, p)`, projected, p a multiple of `tile`.
            chain: The decoders.
            seg_logits: `(C, s², p)`, the main decoder's, in sub-pixel layout.
            maps: Three maps `(s², p)`: the weights of the squared error to the main prediction,
                those of the cross-entropy and its labels; None for what is not there.
            factors: Factors of the two distances.

        Returns:
            Gradients with respect to features, weights and biases; Σ_pixel weight · distance,
            `(2, K)`; and how many decoders choose the main decoder's class, `(s², p)`.
        """
        # the kernel reads features and writes their gradient in the same place
        grad = features.clone()
        parameters = [*chain.weights, *chain.biases]
        grads = [torch.zeros_like(parameter) for parameter in parameters]
        agreeing = torch.empty_like(seg_logits[0])
        values = torch.zeros(2, len(features), dtype=torch.float64)
        targets = _Targets(
            _pointer(seg_logits),
            _pointers(maps),
            _pointer(agreeing),
            (ctypes.c_float * 2)(*factors),
        )
        self._library.native_losses(
            *self._sizes(features),
            _pointer(grad),
            _pointers(parameters),
            _pointers(grads),
            ctypes.byref(targets),
            _pointer(values, torch.float64),
        )
        levels = len(chain.weights)
        return (grad, grads[:levels], grads[levels:]), values, agreeing

    def fisher_product(self, features: Tensor, tangent: Tensor, chain: Chain) -> Tensor:
        """Hessian of KL(decode(x) ‖ decode(x + r)) at r = 0, times a tangent; all `(K, B, P)`."""
        num_positions = features.shape[-1]
        features, product = (
            F.pad(maps, (0, -num_positions % self.tile)).contiguous()
            for maps in (features, tangent)
        )
        self._library.native_fisher(
            *self._sizes(features),
            _pointer(features),
            _pointers([*chain.weights, *chain.biases]),
            _pointer(product),
        )
        return product[..., :num_positions]

    def _sizes(self, features: Tensor) -> tuple[int, int, int]:
        """Returns the numbers of threads, decoders and positions."""
        decoders, _, size = features.shape
        return min(torch.get_num_threads(), size // self.tile), decoders, size


def native_chain(projected: Tensor, chain: Chain, chunking: Chunking) -> NativeChain | None:
    """Builds the kernel for the decoders of projected features `(K, B, P)`, or finds it built.

    Returns None if `compile` is not 'auto' or the kernel is not possible: another device or type,
    decoders without a level, no compiler or a failed build; the last two are logged.
    """
    fits = projected.device.type == 'cpu' and projected.dtype in TYPES and chain.weights
    if chunking.compile != 'auto' or not fits:
        return None
    classes, width = chain.weights[-1].shape[1] // 4, chain.weights[0].shape[-1]
    return _built(len(chain.weights), width, classes, chain.final_activation)


@cache
def _built(levels: int, width: int, classes: int, final_activation: bool) -> NativeChain | None:
    compiler = next(filter(None, map(shutil.which, ('g++', 'clang++'))), None)
    reason = 'no g++ or clang++ found'
    if compiler is not None:
        shape = dict(LEVELS=levels, WIDTH=width, CLASSES=classes, FINAL_RELU=int(final_activation))
        command = [compiler, *FLAGS, *(f'-D{name}={value}' for name, value in shape.items())]
        try:
            begin = time.perf_counter()
            kernel = _load(command)
            print_log(
                'PerturbedDecoderBank: the auxiliary decoders run by a native kernel for this CPU '
                f'(ready after {time.perf_counter() - begin:.1f} s; libraries are kept)',
                logger='current',
            )
            return kernel
        except subprocess.CalledProcessError as error:
            first = error.stderr.decode(errors='replace').strip().splitlines()[:1]
            reason = f'{" ".join(command)} failed: {first}'
        except Exception as error:  # training needs no kernel, so nothing here may end it
            reason = f'{type(error).__name__}: {error}'
    warn(
        'PerturbedDecoderBank: no native kernel for the auxiliary decoders, they run by PyTorch '
        f'(the same result, two to four times slower): {one_line(reason)}'
    )
    return None


def _load(command: list[str]) -> NativeChain:
    """Loads the library, kept under a hash of its inputs; compiles it if missing or damaged."""
    parts = (SOURCE.read_bytes(), ' '.join(command).encode(), _run(command[0], '--version'))
    digest = hashlib.sha256(b'\0'.join([*parts, _processor().encode()])).hexdigest()[:16]
    folder = _cache_folder()
    path = folder / f'native_chain_{digest}.so'
    record = path.with_suffix('.sha256')
    if not _is_whole(path, record):
        _prune(folder)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:  # others may build it too
            built = Path(temporary) / path.name
            _run(*command, str(SOURCE), '-o', str(built))
            library = built.read_bytes()
        for file, content in ((path, library), (record, _hash(library))):
            write_atomic(file, content)
            file.chmod(0o600)
    try:
        return NativeChain(path)
    except Exception:
        record.unlink(missing_ok=True)  # the next process builds it again
        raise


def _run(*command: str) -> bytes:
    """Runs a program for `TIME_LIMIT` at most and returns what it prints."""
    # in its own session, so that its child processes can be killed with it
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=TIME_LIMIT)
        except BaseException:
            end_session(process, at_once=True)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output, errors)
    return output


def _cache_folder() -> Path:
    """Makes the folder of the libraries, to which nobody else may write."""
    folder = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'mmseg_cct'
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.lstat().st_uid == os.geteuid() == folder.stat().st_uid:
        folder.chmod(0o700)
    # whoever owns a link to the folder, or the folder above it, says what is loaded
    owners = {folder.lstat().st_uid, folder.parent.stat().st_uid}
    if not _is_own(folder.stat()) or owners - {0, os.geteuid()}:
        raise PermissionError(
            f'{folder}: others may write to it; expected a folder of the user alone (set '
            'XDG_CACHE_HOME)'
        )
    return folder


def _is_own(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_whole(path: Path, record: Path) -> bool:
    """Whether a library is unchanged since this user built it."""
    for file in (path, record):
        status = file.lstat() if file.exists() else None
        if status is None or not stat.S_ISREG(status.st_mode) or not _is_own(status):
            return False
    return _hash(path.read_bytes()) == record.read_bytes()


def _hash(library: bytes) -> bytes:
    return hashlib.sha256(library).hexdigest().encode()


def _prune(folder: Path) -> None:
    """Removes what killed builds left behind, if too old for a build to be still writing it."""
    for left in [*folder.glob('tmp*'), *folder.glob('.*.part')]:
        with suppress(OSError):  # another process prunes too
            if time.time() - left.lstat().st_mtime > 2 * TIME_LIMIT:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _processor() -> str:
    """Describes what `-march=native` depends on, as machines may share a home directory."""
    info = Path('/proc/cpuinfo')
    if not info.exists():
        return platform.processor() + platform.machine()
    kept = ('model name', 'flags', 'Features', 'CPU part')
    return '\n'.join(sorted({x for x in info.read_text().splitlines() if x.startswith(kept)}))


def _pointer(tensor: Tensor | None, dtype: torch.dtype = torch.float32) -> int | None:
    if tensor is None:
        return None
    if tensor.dtype is not dtype or not tensor.is_cpu or not tensor.is_contiguous():
        layout = 'contiguous' if tensor.is_contiguous() else 'strided'
        raise ValueError(
            f'NativeChain: {layout} {tensor.dtype} on {tensor.device}; expected contiguous {dtype} '
            'on the CPU'
        )
    return tensor.data_ptr()


def _pointers(tensors: Sequence[Tensor | None]) -> Any:
    return (ctypes.c_void_p * len(tensors))(*map(_pointer, tensors))
