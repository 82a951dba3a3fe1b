#!/usr/bin/env python
"""The Triton kernel of the decoders, compiled for GPUs that need not be there.

For each architecture and configuration: registers of a thread, bytes of spills, shared memory.
With --gpu also the time of the last level on this machine's GPU, at the paper's shape (K=30,
B=C=21, stride 8, z 10×512×40×40), and its difference from PyTorch.

Examples:
    python benchmarks/triton_kernel.py
    python benchmarks/triton_kernel.py --archs 90 --types fp32 --gpu
"""

import argparse
import itertools
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mmseg_cct.models.layers import triton_chain
from mmseg_cct.models.layers.kernel_trial import _difference
from mmseg_cct.models.losses import chunk_step
from mmseg_cct.utils.templates import markdown_table

K, C, COLUMNS = 30, 21, 16 * 10 * 40 * 40
NAMES = ['x', 'w', 'b', 'p', 'main', 'soft', 'hard', 'labels', 'soft_factor', 'hard_factor']
NAMES += ['gx', 'gw', 'gb', 'values', 'agreeing']


GPUS = {80: 'A100', 86: 'RTX 3090', 89: 'RTX 4090', 90: 'H100', 100: 'B200'}


def compile_for(arch: int, type_name: str, precision: str, config: triton.Config) -> list[str]:
    """Compiles for the squared error alone; returns registers, spills and shared memory."""
    signature = dict.fromkeys(NAMES, '*fp32') | dict(main='*i64', labels='*i64', M='i32')
    signature |= dict(x=f'*{type_name}', gx=f'*{type_name}')
    constants = dict(
        B=C, C=C, BP=32, CP=32, RELU_IN=True, RELU=False, SOFT=True, KL=False, HARD=False,
        PRECISION=precision, LOG2_E=1.4426950408889634, **config.kwargs,
    )  # fmt: skip
    aligned: Any = {(i,): [['tt.divisibility', 16]] for i in range(len(signature))}
    types = signature | dict.fromkeys(constants, 'constexpr')
    source = ASTSource(triton_chain.last_level, types, constants, aligned)
    options = dict(num_warps=config.num_warps, num_stages=config.num_stages)
    built = triton.compile(source, target=GPUTarget('cuda', arch, 32), options=options)
    tool = Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        Path(file.name).write_bytes(built.asm['cubin'])
        usage = subprocess.check_output([tool, '-res-usage', file.name], text=True)
    needed = [re.findall(rf'{key}:(\d+)', usage)[0] for key in ('REG', 'STACK')]
    return [*needed, str(built.metadata.shared)]


def measure(config: triton.Config, dtype: torch.dtype) -> str:
    """Time of the last level on this machine's GPU, and its difference from PyTorch."""
    x = torch.randn(K, C, COLUMNS // 16, device='cuda').to(dtype)
    weights, biases = [torch.randn(K, 4 * C, C, device='cuda') / 5], [x.new_zeros(K, 4 * C, 1)]
    main = torch.randn(C, 4, COLUMNS // 16, device='cuda')
    factor = torch.ones((), device='cuda')
    term = chunk_step.TermTensors(None, torch.ones_like(main[:1]), factor, None)
    step = chunk_step.ChunkStep((chunk_step.mse_distance,), False, True)
    chunk = (x, weights, biases, main, [term])
    run = partial(chunk_step.kernel_step, step, triton_chain.TritonChain(False), *chunk)
    tuned = triton.autotune([config], key=[])(triton_chain.last_level)
    with mock.patch.object(triton_chain, '_tuned', tuned):
        difference = _difference(run(), step(*chunk))
        return f'{16 * triton.testing.do_bench(run):.2f} ms, off by {difference:.1e}'


def main() -> None:
    """Prints a row for each architecture, type and configuration."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--archs', type=int, nargs='+', choices=GPUS, default=list(GPUS))
    parser.add_argument('--types', nargs='+', default=['fp32', 'fp32x3', 'fp16'])
    parser.add_argument('--gpu', action='store_true')
    options = parser.parse_args()
    rows = []
    for arch, type_name, config in itertools.product(
        options.archs, options.types, triton_chain.CONFIGS
    ):
        precision = 'tf32x3' if type_name == 'fp32x3' else 'tf32'
        dtype = torch.float16 if type_name == 'fp16' else torch.float32
        if config in triton_chain.offered(dtype, precision):
            shape = f'{config.kwargs["T"]} × {config.num_warps}'
            needed = compile_for(arch, type_name[:4], precision, config)
            rows.append([f'{GPUS[arch]} (sm_{arch})', type_name, shape, *needed])
    columns = ('GPU', 'type', 'tile × warps', 'registers', 'spills, B', 'shared, B')
    print(markdown_table(columns, rows), flush=True)
    types = (torch.float32, torch.float16) if options.gpu else ()
    for config, dtype in itertools.product(triton_chain.CONFIGS, types):
        print(f'{config}, {dtype}: {measure(config, dtype)}', flush=True)


if __name__ == '__main__':
    main()
