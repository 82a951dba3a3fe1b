"""A GPU by simulation: its tensors have shape, type and device, but no values.

`SimulatedGPU` runs each operation on the GPU by its shape alone (PyTorch's fake tensors), those on
the CPU for real. It fails where tensors of two devices meet, and notes what the host waits for, the
number of operations and the memory of the tensors.

It cannot see values (`.item()` gives 0, half of a mask is True), compiled code, the workspaces of
cuDNN, attention's fused kernels, or a GPU's own errors.

Import this module before torch: `load_driver` has to come first.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
import traceback
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

# What PyTorch asks of CUDA: the number of devices (`c10::cuda::device_count`), and whether the
# driver has a context, without which backward through tensors on `cuda:0` is refused.
_DRIVER = """
int simulated_devices = 0;
signed char _ZN3c104cuda12device_countEv(void) { return simulated_devices; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 0;
    return 0;
}
"""


def load_driver() -> ctypes.CDLL:
    """Builds and loads the driver, whose symbols then win over those of PyTorch's libraries."""
    if 'torch' in sys.modules:
        raise SystemExit('error: torch is imported already; expected _simulated_gpu before it')
    compiler = next(filter(None, map(shutil.which, ('cc', 'gcc', 'clang'))), None)
    if compiler is None:
        raise SystemExit('error: no C compiler; expected cc, gcc or clang')
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, 'driver.c'), Path(folder, 'driver.so')
        source.write_text(_DRIVER)
        options = ['-shared', '-fPIC', '-Wl,-soname,libcuda.so.1']
        subprocess.run([compiler, *options, str(source), '-o', str(library)], check=True)
        return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


driver = load_driver()

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import (  # noqa: E402
    TorchDispatchMode,
    _disable_current_modes,
)
from torch.utils._pytree import tree_leaves  # noqa: E402

aten = torch.ops.aten
_BLOCK = 512  # bytes, to which PyTorch's allocator rounds up


class _Shapes(FakeTensorMode):
    avoid_device_init = True  # there is a device by now, but none to initialise


class SimulatedGPU(TorchDispatchMode):
    """Runs what is in its context on a simulated GPU.

    `peak` is the largest sum of the memory of all tensors on the GPU, in bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shapes = _Shapes(allow_non_fake_inputs=True)
        self.memory = self.peak = 0
        self.storages: set[int] = set()
        self.reset()

    def reset(self) -> None:
        """Forgets waits and operations, as at the beginning of a step."""
        self.waits: Counter[str] = Counter()  # what the host waited for: kind and place
        self.operations: Counter[str] = Counter()  # on the GPU, without views

    def figures(self) -> dict[str, Any]:
        """Waits and operations since the last reset, and the peak of memory."""
        return dict(waits=dict(self.waits), operations=self.operations.total(), memory=self.peak)

    def __enter__(self) -> 'SimulatedGPU':
        global _current
        _current = self
        torch._C._set_only_lift_cpu_tensors(True)  # a list becomes a CPU tensor, copied in sight
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        global _current
        _current = None
        torch._C._set_only_lift_cpu_tensors(False)
        super().__exit__(*error)

    def note(self, kind: str) -> None:
        """Notes that the host waits here."""
        self.waits[f'{kind}: {_place()}'] += 1

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        device = torch.device(kwargs.get('device') or 'cpu')
        if device.type == 'cpu' and all(tensor.device.type == 'cpu' for tensor in tensors):
            return func(*args, **kwargs)
        if kwargs.get('generator') is not None:  # there is none on this GPU
            kwargs['generator'] = None
        if func.namespace == 'aten' and not func.is_view:
            self.operations[func.overloadpacket.__name__] += 1
        run = _SPECIAL.get(func.overloadpacket)
        if run is not None:
            out = run(self, func, args, kwargs)
        else:
            for tensor in tensors:
                if tensor.device.type == 'cpu' and tensor.dim():
                    shape = tuple(tensor.shape)
                    raise RuntimeError(f'{func}: a tensor of {shape} on the CPU, others on the GPU')
            out = self.by_shape(func, args, kwargs)
        for tensor in tree_leaves(out):
            if isinstance(tensor, FakeTensor) and tensor.device.type == 'cuda':
                self._count(tensor.untyped_storage())
        return out

    def by_shape(self, func, args, kwargs):
        """Runs an operation by its shapes."""
        with self.shapes:
            return func(*args, **kwargs)

    def copied(self, func, args, kwargs):
        """Copies between host and GPU; only from pinned memory, or to the host, may it not wait."""
        source = args[-1] if func is aten._to_copy.default else args[1]
        target = args[0].device if func is aten.copy_.default else kwargs.get('device')
        target = source.device if target is None else torch.device(target)
        at_once = kwargs.get('non_blocking') or (func is aten.copy_.default and True in args[2:])
        if target.type == 'cuda':
            if source.device.type == 'cpu' and not (at_once and source.is_pinned()):
                self.note('copy to the GPU')
            return self.by_shape(func, args, kwargs)
        if not at_once:
            self.note('copy to the host')
        values = _values_of(source, kwargs.get('dtype') or source.dtype)
        return args[0].copy_(values) if func is aten.copy_.default else values

    def number(self, func, args, kwargs):
        """Reads one value."""
        self.note('value')
        return torch.zeros((), dtype=args[0].dtype).item()

    def of_unknown_size(self, func, args, kwargs):
        """Runs an operation whose result's size depends on values; half of them count."""
        self.note(func.overloadpacket.__name__)
        half, first = max(args[0].numel() // 2, 1), args[0]
        with self.shapes:
            if func.overloadpacket is aten.nonzero:
                return torch.zeros(half, first.dim(), dtype=torch.int64, device='cuda')
            if func.overloadpacket is aten.masked_select:
                return first.new_empty(half)
            if func.overloadpacket is aten._unique2:
                return first.new_empty(half), first.new_empty(0), first.new_empty(0)
            if func.overloadpacket is aten.bincount:
                return torch.zeros(args[2] if len(args) > 2 else 2, device='cuda')
        return True  # equal

    def indexed(self, func, args, kwargs):
        """Indexes by tensors: a mask needs its size, an index on the host a copy."""
        indices = []
        fills = func.overloadpacket is not aten.index and args[2].numel() == 1
        for index in args[1]:
            if index is not None and index.device.type == 'cpu':
                self.note('copy to the GPU')
            if index is not None and index.dtype == torch.bool and not fills:
                self.note('nonzero')
                half = max(index.numel() // 2, 1)
                with self.shapes:
                    places = torch.zeros(half, dtype=torch.int64, device='cuda')
                indices += [places] * index.dim()
            elif index is not None and index.device.type == 'cpu':
                with self.shapes:
                    indices.append(torch.zeros(index.shape, dtype=index.dtype, device='cuda'))
            else:
                indices.append(index)
        return self.by_shape(func, (args[0], indices, *args[2:]), kwargs)

    def histogram(self, func, args, kwargs):
        """Counts in bins; without a range the host needs the extremes."""
        if args[2:] in ((), (0, 0)):
            self.note('histc')
        return self.by_shape(func, args, kwargs)

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self.storages:
            return
        self.storages.add(storage._cdata)
        size = -(-storage.nbytes() // _BLOCK) * _BLOCK
        self.memory += size
        self.peak = max(self.peak, self.memory)
        weakref.finalize(storage, self._free, storage._cdata, size)

    def _free(self, storage: int, size: int) -> None:
        self.storages.discard(storage)
        self.memory -= size


_SPECIAL = {
    aten._to_copy: SimulatedGPU.copied,
    aten.copy_: SimulatedGPU.copied,
    aten._local_scalar_dense: SimulatedGPU.number,
    **dict.fromkeys(
        (aten.nonzero, aten.masked_select, aten._unique2, aten.bincount, aten.equal),
        SimulatedGPU.of_unknown_size,
    ),
    **dict.fromkeys((aten.index, aten.index_put, aten.index_put_), SimulatedGPU.indexed),
    aten.histc: SimulatedGPU.histogram,
}
_current: SimulatedGPU | None = None


def _values_of(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Makes up values: the middle of each map is 1, as an object is, the rest 0."""
    with _disable_current_modes():
        values = torch.zeros(tuple(tensor.shape), dtype=dtype)
        if values.dim() > 1:
            h, w = values.shape[-2:]
            values[..., h // 4 : h - h // 4, w // 4 : w - w // 4] = 1
        return values


def _place() -> str:
    """Names the innermost function of this project, and that of MMSeg or mmengine it is in."""
    names = []
    for frame in reversed(traceback.extract_stack()):
        for package in ('mmseg_cct', 'mmseg', 'mmengine', 'timm'):
            _, found, file = frame.filename.rpartition(f'/{package}/')
            if found and not (names and package != 'mmseg_cct'):
                names.append(f'{package}/{file} {frame.name}')
        if names and names[-1].startswith('mmseg_cct/'):
            break
    return ' < '.join(names) or 'elsewhere'


# --------------------------------------------------------------------------- what asks the driver
class _Event:
    """Reached when the GPU gets to it, so the host waits for what came before it, not for all."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def record(self, *_: object) -> None: ...

    def synchronize(self) -> None:
        if _current is not None:
            _current.note('event')


_CPUGenerator = torch.Generator


class _Generator(_CPUGenerator):
    def __new__(cls, device: object = 'cpu') -> torch.Generator:
        return _CPUGenerator('cpu')


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **_):
    logits = query @ key.mT * (scale or query.shape[-1] ** -0.5)
    weight = (logits if attn_mask is None else logits + attn_mask).softmax(-1)
    return torch.nn.functional.dropout(weight, dropout_p) @ value


def _pinned(tensor: Tensor) -> Tensor:
    if tensor.device.type != 'cpu':
        raise RuntimeError(f'cannot pin memory on {tensor.device}')
    if tensor.is_pinned():
        return tensor
    copied = tensor.clone()
    copied.pinned_here = True
    return copied


def _conv_backend(*args, **kwargs):
    try:
        return _select_conv_backend(*args, **kwargs)
    except RuntimeError:  # it asks the driver whether bfloat16 is known
        return torch._C._ConvBackend.Cudnn


def _moved(module, *args, **kwargs):
    if args or kwargs.keys() != {'memory_format'}:
        return _move(module, *args, **kwargs)
    for tensor in (*module.parameters(), *module.buffers()):  # torch cannot swap simulated ones
        if tensor.dim() == 4:
            tensor.data = tensor.data.contiguous(**kwargs)
    return module


_move = torch.nn.Module.to
_select_conv_backend = torch._C._select_conv_backend


def install() -> None:
    """Replaces the parts of torch that ask the driver; for the rest of the process."""
    with _Shapes():  # sets a guard of devices that does nothing, while there are none
        pass
    ctypes.c_int.in_dll(driver, 'simulated_devices').value = 8  # as many as that guard has
    torch.autograd.set_multithreading_enabled(False)  # no thread for the GPU
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    torch.nn.functional.scaled_dot_product_attention = _attention
    torch._C._select_conv_backend = _conv_backend
    torch.nn.Module.to = _moved
    torch.Generator = _Generator
    torch.Tensor.pin_memory = lambda self, *_: _pinned(self)
    torch.Tensor.is_pinned = lambda self, *_: hasattr(self, 'pinned_here')
    cuda = torch.cuda
    cuda.Event = _Event
    for name in (
        *('_lazy_init', 'set_device', 'empty_cache', 'reset_peak_memory_stats', 'synchronize'),
        *('manual_seed', 'manual_seed_all', 'set_rng_state'),
    ):
        setattr(cuda, name, lambda *_, **__: None)
    for name in ('max_memory_allocated', 'memory_allocated', 'current_device'):
        setattr(cuda, name, lambda *_, **__: 0)
    cuda.get_rng_state = lambda *_: torch.zeros(16, dtype=torch.uint8)
    cuda.device_count = lambda: 1
    cuda.get_device_name = lambda *_: 'simulated'
    cuda.get_device_capability = lambda *_: (8, 0)
    cuda.is_bf16_supported = lambda *_, **__: True
