#!/usr/bin/env python
"""The Triton kernel of the decoders, compiled for GPUs that need not be there.

For each architecture and configuration: registers of a thread, bytes of spills, shared memory,
resident warps of a multiprocessor of 64 or 48 (their share is the occupancy), and the least time
of the last level at the paper's shape (K=30, B=C=21, stride 8, z 10×512×40×40): the longest of what
its matrix products, its instructions and its memory take at the peak rates. With --gpu also the
time of each configuration on this machine's GPU.

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
from typing import Any, NamedTuple
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mmseg_cct.models.layers import triton_chain
from mmseg_cct.models.layers.kernel_trial import _difference
from mmseg_cct.models.losses import chunk_step

K, C, COLUMNS = 30, 21, 16 * 10 * 40 * 40
NAMES = ['x', 'w', 'b', 'p', 'main', 'soft', 'hard', 'labels', 'soft_factor', 'hard_factor']
NAMES += ['gx', 'gw', 'gb', 'values', 'agreeing']


class GPU(NamedTuple):
    """Peak rates of a card, by its maker's data sheet, and limits of a multiprocessor."""

    name: str
    cores: int  # multiprocessors
    ghz: float
    tf32: float  # dense TFLOP/s
    fp16: float
    bandwidth: float  # TB/s
    shared: int  # KiB
    warps: int


GPUS = {
    80: GPU('A100', 108, 1.41, 156, 312, 2.04, 164, 64),
    86: GPU('RTX 3090', 82, 1.70, 35.6, 71, 0.94, 100, 48),
    89: GPU('RTX 4090', 128, 2.52, 82.6, 165, 1.01, 100, 48),
    90: GPU('H100', 132, 1.83, 494, 989, 3.35, 228, 64),
    100: GPU('B200', 148, 1.85, 1100, 2250, 8.0, 228, 64),
}


def compile_for(arch: int, type_name: str, precision: str, config: triton.Config) -> dict[str, Any]:
    """Compiles for the squared error alone; returns what the binary needs."""
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
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        Path(file.name).write_bytes(built.asm['cubin'])
        usage, sass = (_cuobjdump(option, file.name) for option in ('-res-usage', '-sass'))
    registers, spills = (int(re.findall(rf'{key}:(\d+)', usage)[0]) for key in ('REG', 'STACK'))
    return dict(
        registers=registers, spills=spills, shared=built.metadata.shared, loop=inner_loop(sass)
    )


def _cuobjdump(option: str, file: str) -> str:
    tool = Path(triton.__file__).parent / 'backends/nvidia/bin/cuobjdump'
    return subprocess.run([tool, option, file], capture_output=True, text=True, check=True).stdout


def inner_loop(sass: str) -> int:
    """Number of instructions in the innermost loop with matrix products."""
    lines = re.findall(r'/\*([0-9a-f]{4,})\*/\s+([^;]*);', sass)
    loops = []
    for address, instruction in lines:
        jump = re.search(r'BRA.* 0x([0-9a-f]+)', instruction)
        if jump and int(jump[1], 16) < int(address, 16):
            inside = [i for a, i in lines if int(jump[1], 16) <= int(a, 16) <= int(address, 16)]
            if any('MMA' in i for i in inside):
                loops.append(len(inside))
    return min(loops)


def bounds(gpu: GPU, type_name: str, precision: str, config: triton.Config, loop: int) -> dict:
    """Milliseconds of the last level's products, instructions and memory at the peak rates."""
    bytes_each = 4 if type_name == 'fp32' else 2
    products = 3 * 2 * K * 4 * 32 * 32 * COLUMNS * (3 if precision == 'tf32x3' else 1)
    tiles = K * COLUMNS / config.kwargs['T']
    # features and their gradient, main prediction and weights
    memory = 2 * K * C * COLUMNS * bytes_each + (C + 2) * 4 * COLUMNS * 4
    return dict(
        products=products / (gpu.tf32 if type_name == 'fp32' else gpu.fp16) / 1e9,
        instructions=tiles * config.num_warps * loop / (gpu.cores * 4 * gpu.ghz) / 1e6,
        memory=memory / gpu.bandwidth / 1e9,
    )


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
    print('| GPU | type | tile × warps | registers, spills | shared | warps | least time |')
    print('| --- | --- | --- | --- | ---: | ---: | ---: |')
    for arch, type_name, config in itertools.product(
        options.archs, options.types, triton_chain.CONFIGS
    ):
        gpu, precision = GPUS[arch], 'tf32x3' if type_name == 'fp32x3' else 'tf32'
        dtype = torch.float16 if type_name == 'fp16' else torch.float32
        if config not in triton_chain.offered(dtype, precision):
            continue
        tile = f'{config.kwargs["T"]} × {config.num_warps}'
        used = compile_for(arch, type_name[:4], precision, config)
        resident = min(
            65536 // (-(-used['registers'] // 8) * 8 * 32) // config.num_warps,
            gpu.shared * 1024 // (used['shared'] + 1024),
        )
        least = bounds(gpu, type_name[:4], precision, config, used['loop'])
        longest, what = max((milliseconds, what) for what, milliseconds in least.items())
        print(
            f'| {gpu.name} (sm_{arch}) | {type_name} | {tile} '
            f'| {used["registers"]}, {used["spills"]} B '
            f'| {used["shared"] / 1024:.0f} KiB | {resident * config.num_warps} of {gpu.warps} '
            f'| {longest:.1f} ms ({what}) |',
            flush=True,
        )
    for config, type_name in itertools.product(
        triton_chain.CONFIGS, (torch.float32, torch.float16)
    ):
        if options.gpu:
            print(f'{config}, {type_name}: {measure(config, type_name)}', flush=True)


if __name__ == '__main__':
    main()
