#!/usr/bin/env python
"""Training steps on a simulated GPU: what the host waits for, and how many operations a step has.

The tensors of this GPU have shape, type and device but no values (PyTorch's fake tensors); the rest
is real, but for the Triton kernel, which is one operation. What torch.compile would merge counts as
it is written. A step fails where tensors of two devices meet. Needs a C compiler and Triton.

    python benchmarks/simulated_steps.py [CONFIG[:METHOD[:TYPE]] ...]
"""

import ctypes
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

# Reports devices, without which backward refuses tensors on a GPU. Loaded before torch, so that its
# symbols win over those of torch's libraries.
_DRIVER = """
int devices = 0;
signed char _ZN3c104cuda12device_countEv(void) { return devices; }
int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { return *flags = *active = 0; }
"""
with tempfile.TemporaryDirectory() as folder:
    command = f'cc -shared -fPIC -Wl,-soname,libcuda.so.1 -xc - -o {folder}/a.so'
    subprocess.run(command.split(), input=_DRIVER, text=True, check=True)
    driver = ctypes.CDLL(f'{folder}/a.so', mode=ctypes.RTLD_GLOBAL)

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_flatten  # noqa: E402
from torch.utils.data._utils.pin_memory import pin_memory  # noqa: E402

aten, cuda, _Generator = torch.ops.aten, torch.cuda, torch.Generator
# these only allocate, or look at shapes
NO_KERNEL = {
    *(aten.empty, aten.new_empty, aten.empty_like, aten.empty_strided, aten.new_empty_strided),
    *(aten._unsafe_view, aten.is_same_size, aten._has_same_storage_numel),
    aten._efficientzerotensor,
}


class _Shapes(FakeTensorMode):
    avoid_device_init = True  # there is a device by now, but none to initialise


class SimulatedGPU(TorchDispatchMode):
    """Runs the operations on a GPU by their shapes; counts them and what the host waits for."""

    shapes = _Shapes(allow_non_fake_inputs=True)
    waits: Counter[str] = Counter()
    parts: Counter[str] = Counter()  # kernels, about, by the file that asks for them

    @property
    def operations(self) -> int:
        return self.parts.total()

    @property
    def of_branch(self) -> int:
        """Those of the auxiliary branch: perturbations, decoders and their losses."""
        return sum(self.parts[part] for part in BRANCH)

    def wait(self, reason: str) -> None:
        """Notes that the host waits in the innermost function of this project or its host's.

        A copy of `to_host` waits in the function that reads it.
        """
        for file, _, function, _ in reversed(traceback.extract_stack()):
            if Path(file).stem == 'transfer':
                continue
            if PACKAGE in Path(file).parents or {'mmengine', 'mmseg'} & {*Path(file).parts}:
                self.waits[f'{reason} in {Path(file).stem}.{function}'] += 1
                break

    def part(self) -> str:
        """Names the innermost file that asks for an operation, or did so in the forward pass."""
        frame, node = sys._getframe(2), torch._C._current_autograd_node()
        files = []
        while frame:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        if node is not None and 'traceback_' in node.metadata:  # by the anomaly mode
            lines = reversed(node.metadata['traceback_'])
            files = [line.split('"')[1] for line in lines if '"' in line] + files
        for file in map(Path, files):
            if PACKAGE in file.parents or {'mmengine', 'mmseg', 'mmcv', 'optim'} & {*file.parts}:
                return file.stem
        return 'others'

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if torch.is_tensor(leaf)]
        on_host = [tensor for tensor in tensors if tensor.device.type == 'cpu']
        if torch.device(kwargs.get('device') or 'cpu').type == 'cpu' and on_host == tensors:
            return func(*args, **kwargs)
        kwargs.pop('generator', None)  # there is none on this GPU
        started = func.namespace == 'aten' and not func.is_view
        if started and func.overloadpacket not in NO_KERNEL:
            empty = tensors and not any(tensor.numel() for tensor in tensors)
            self.parts[self.part()] += not empty
        operation = func.overloadpacket
        if operation in (aten._to_copy, aten.copy_):
            in_place = operation is aten.copy_
            source = args[1] if in_place else args[0]
            target = args[0].device if in_place else kwargs.get('device') or source.device
            from_host, to_host = (torch.device(d).type == 'cpu' for d in (source.device, target))
            at_once = kwargs.get('non_blocking') or (in_place and True in args[2:])
            if from_host != to_host and not (at_once and (to_host or hasattr(source, 'pinned'))):
                self.wait('copy')
            if to_host:
                values = torch.zeros(source.shape, dtype=kwargs.get('dtype') or source.dtype)
                if source.dim() > 2:  # an object in a map
                    values[..., : source.shape[-1] // 2] = 1
                return args[0].copy_(values) if in_place else values
        elif operation is aten._local_scalar_dense:
            self.wait('value')
            return torch.zeros((), dtype=args[0].dtype).item()
        elif any(tensor.dim() for tensor in on_host):
            raise RuntimeError(f'{func}: tensors on the CPU and on the GPU')
        with self.shapes:
            return func(*args, **kwargs)


with _Shapes():  # sets a guard of devices that does nothing, while there are none
    pass
ctypes.c_int.in_dll(driver, 'devices').value = 8  # as many as that guard has
torch.autograd.set_multithreading_enabled(False)  # no thread for the GPU
torch.__future__.set_overwrite_module_params_on_conversion(True)
torch._C._set_only_lift_cpu_tensors(True)  # a list becomes a CPU tensor, copied in sight
torch.Tensor.pin_memory = lambda tensor, *_: vars(tensor).update(pinned=True) or tensor
torch.Generator = type('', (_Generator,), {'__new__': lambda *_: _Generator('cpu')})
cuda._lazy_init = cuda.set_device = cuda.current_device = cuda.synchronize = lambda *_: 0
cuda.manual_seed = cuda.manual_seed_all = cuda.empty_cache = lambda *_: None
cuda.max_memory_allocated = cuda.reset_peak_memory_stats = lambda *_, **__: 0
cuda.device_count = lambda: 1
cuda.is_bf16_supported = lambda *_, **__: True
torch._C._select_conv_backend = lambda *_, **__: torch._C._ConvBackend.Cudnn  # asks the device
cuda.get_device_capability = lambda *_: (9, 0)
cuda.get_device_properties = lambda *_: SimpleNamespace(multi_processor_count=132)
cuda.device_of = lambda *_: nullcontext()
# reached when the GPU gets to it: the host waits only for what came before
cuda.Event = lambda: SimpleNamespace(record=int, synchronize=lambda: GPU.wait('event'))

# these ask for the device when they are imported
import mmengine.runner  # noqa: E402

import mmseg_cct.plugin  # noqa: E402
from mmseg_cct.config.load import load_config  # noqa: E402
from mmseg_cct.models.layers import chunking, triton_chain  # noqa: E402
from mmseg_cct.models.losses import chunk_step  # noqa: E402

DEMO = 'demo/cct_shapes'
METHODS = ('cct-strong:float16', 'cct-plus', 'unimatch')
STEPS = ['cct/cct_r50_voc_1464', *(f'{DEMO}:{method}' for method in METHODS)]
PACKAGE, GPU = Path(mmseg_cct.__file__).parent, SimulatedGPU()
BRANCH = {file.stem for file in (PACKAGE / 'models/perturbations').glob('*.py')} | {
    *('perturbed_decoder_bank', 'stacked_decoders', 'triton_chain', 'chunking', 'subpixel'),
    *('chunked_loss', 'chunk_step', 'pixel_term', 'auxiliary'),
}
mmengine.runner.runner.collect_env = dict


class _Kernel:
    """In place of the Triton kernel: a single operation."""

    def __getitem__(self, grid):
        return lambda *_, **__: GPU.parts.update(triton_chain=1)


triton_chain._tuned = _Kernel()
chunk_step.wins_trial = lambda *_: True
chunking._compiled = lambda function, **_: function  # fewer operations, how many only a GPU tells


def train(name: str, method: str = '', dtype: str = '', steps: int = 2, **options) -> None:
    """Takes some steps; `GPU` keeps what the last one did."""
    options |= dict(method=method) if method else {}
    config, source = load_config(DEMO, options), load_config(name, options)
    config.model, config.optim_wrapper = source.model, source.optim_wrapper
    config.model.data_preprocessor.size = config.crop_size
    config.model.backbone.init_cfg = None
    config.optim_wrapper.optimizer.foreach = True  # as torch chooses on a real GPU
    if dtype == 'bfloat16':  # as --amp on such a GPU
        config.optim_wrapper.type = 'BFloat16OptimWrapper'
    elif dtype:
        config.optim_wrapper.update(type='AmpOptimWrapper', dtype=dtype)
    for key in ('preflight', 'findings', 'memory_format'):  # which need values
        config.default_hooks.pop(key)
    config.default_hooks.checkpoint = None
    config.visualizer.vis_backends = []  # whose folder is gone when a step is taken again
    for part in ('val', 'test'):
        config.update({f'{part}_{key}': None for key in ('dataloader', 'cfg', 'evaluator')})
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=steps)
    config.log_level, config.experiment_name = 'ERROR', f'{name}{method}{dtype}'.replace('/', '-')
    reset = mmengine.hooks.Hook()
    reset.before_train_iter = lambda *_, **__: vars(GPU).update(waits=Counter(), parts=Counter())
    with tempfile.TemporaryDirectory() as config.work_dir, GPU:
        runner = mmengine.runner.Runner.from_cfg(config)
        runner.register_hook(reset)
        loader = runner._train_dataloader = runner.build_dataloader(config.train_dataloader)
        loader.collate_fn = lambda samples: pin_memory(mmengine.dataset.pseudo_collate(samples))
        runner.train()


if __name__ == '__main__':
    for step in sys.argv[1:] or STEPS:
        # keeps where in the forward pass an operation of the backward pass comes from
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            train(*step.split(':'))
        waits = ', '.join(f'{n} {wait}' for wait, n in sorted(GPU.waits.items()))
        counted = f'{GPU.operations} operations, {GPU.of_branch} of the branch'
        print(f'{step}: {counted}; the host waits: {waits}', flush=True)
        print('  ' + ', '.join(f'{part} {n}' for part, n in GPU.parts.most_common()), flush=True)
