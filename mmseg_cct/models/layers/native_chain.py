"""Builds and calls `native_chain.cpp`, the auxiliary decoders as one fused kernel for a CPU.

The machine's C++ compiler builds the kernel for one stride and numbers of channels. This takes
seconds and happens once: libraries are kept in the user's cache directory
(`$XDG_CACHE_HOME/mmseg_cct`). If anything fails, training continues in PyTorch.
"""

import ctypes
import hashlib
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mmseg_cct.utils.files import cache_folder, write_atomic
from mmseg_cct.utils.log import say, warn
from mmseg_cct.utils.text import error_line

from .chunking import Chunking
from .stacked_decoders import Chain

SOURCE = Path(__file__).with_suffix('.cpp')
FLAGS = ['-O3', '-march=native', '-std=c++17', '-shared', '-fPIC', '-pthread']
FLAGS += ['-fno-math-errno', '-fno-trapping-math']  # results do not change
# Computed in float32: 16-bit features come from autocast.
TYPES = (torch.float32, torch.bfloat16, torch.float16)
_DECODERS = 'PerturbedDecoderBank: the auxiliary decoders'
# A compiler that hangs, or asks something, must not stop the training.
_run: Any = partial(
    subprocess.run, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
)


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
        main_logits: Tensor,
        maps: Sequence[Tensor | None],
        factors: Sequence[Tensor],
    ) -> tuple[tuple[Tensor, list[Tensor], list[Tensor]], Tensor, Tensor]:
        """Computes Σ factor · Σ_k Σ_pixel weight · distance for two distances, and its gradients.

        Args:
            features: `(K, B, p)`, projected, p a multiple of `tile`.
            chain: The decoders.
            main_logits: `(C, R, Q)`, the main decoder's, in sub-pixel layout.
            maps: Three maps `(R, Q)`: the weights of the squared error to the main prediction,
                those of the cross-entropy and its labels; None for what is not there.
            factors: Factors of the two distances.

        Returns:
            Gradients with respect to features, weights and biases; Σ_pixel weight · distance,
            `(2, K)`; and how many decoders choose the main decoder's class, `(R, Q)`.
        """
        decoders, _, size = features.shape
        # the kernel reads features and writes their gradient in the same place
        grad = _as_read(features).clone()
        parameters = [_as_read(parameter) for parameter in (*chain.weights, *chain.biases)]
        grads = [torch.zeros_like(parameter) for parameter in parameters]
        seg_logits = _as_read(main_logits)
        maps = [None if values is None else _as_read(values) for values in maps]
        agreeing = torch.empty_like(seg_logits[0])
        values = torch.zeros(2, len(features), dtype=torch.float64)
        both = (ctypes.c_float * 2)(*map(float, factors))
        targets = _Targets(seg_logits.data_ptr(), _pointers(maps), agreeing.data_ptr(), both)
        threads = min(torch.get_num_threads(), size // self.tile)
        gradients = grad.data_ptr(), _pointers(parameters), _pointers(grads)
        outputs = ctypes.byref(targets), values.data_ptr()
        self._library.native_losses(threads, decoders, size, *gradients, *outputs)
        levels = len(chain.weights)
        return (grad, grads[:levels], grads[levels:]), values, agreeing

    def fisher_product(self, features: Tensor, tangent: Tensor, chain: Chain) -> Tensor:
        """Hessian of KL(decode(x) ‖ decode(x + r)) at r = 0, times a tangent; all `(K, B, P)`."""
        num_positions = features.shape[-1]
        features, product = (
            _as_read(F.pad(maps, (0, -num_positions % self.tile))) for maps in (features, tangent)
        )
        decoders, _, size = features.shape
        parameters = [_as_read(parameter) for parameter in (*chain.weights, *chain.biases)]
        threads = min(torch.get_num_threads(), size // self.tile)
        inputs = features.data_ptr(), _pointers(parameters)
        self._library.native_fisher(threads, decoders, size, *inputs, product.data_ptr())
        return product[..., :num_positions]


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
            ready = f'ready after {time.perf_counter() - begin:.1f} s; libraries are kept'
            say(f'{_DECODERS} run by a native kernel for this CPU ({ready})')
            return kernel
        except subprocess.CalledProcessError as error:
            first = error.stderr.decode(errors='replace').strip().splitlines()[:1]
            reason = f'{" ".join(command)} failed: {first}'
        except Exception as error:  # training needs no kernel, so nothing here may end it
            reason = error_line(error)
    slower = 'the same result, two to four times slower'
    warn(f'{_DECODERS} run by PyTorch, without a native kernel ({slower}): {reason}')
    return None


def _load(command: list[str]) -> NativeChain:
    """Loads the library, kept under a hash of its inputs; compiles it if there is none."""
    version = _run([command[0], '--version']).stdout
    parts = (SOURCE.read_bytes(), ' '.join(command).encode(), version, _processor().encode())
    name = 'native_chain_' + _digest(b'\0'.join(parts))
    libraries = cache_folder().glob(f'{name}_*.so')
    # its name ends with what it holds: to load one that was cut off is a bus error
    path = next((p for p in libraries if p.stem.endswith(_digest(p.read_bytes()))), None)
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            built = Path(folder) / f'{name}.so'
            _run([*command, str(SOURCE), '-o', str(built)])
            library = built.read_bytes()
        path = cache_folder() / f'{name}_{_digest(library)}.so'
        write_atomic(path, library)  # other processes may build it too
    try:
        return NativeChain(path)
    except Exception:
        path.unlink()  # the next process builds it again
        raise


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _processor() -> str:
    """Describes what `-march=native` depends on, as machines may share a home directory."""
    info = Path('/proc/cpuinfo')
    if not info.exists():
        return platform.processor() + platform.machine()
    keys = ('model name', 'flags', 'Features', 'CPU part')
    lines = info.read_text().splitlines()
    return '\n'.join(sorted({line for line in lines if line.startswith(keys)}))


def _as_read(tensor: Tensor) -> Tensor:
    return tensor.float().contiguous()


def _pointers(tensors: Sequence[Tensor | None]) -> Any:
    pointers = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    return (ctypes.c_void_p * len(tensors))(*pointers)
