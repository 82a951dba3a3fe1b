#!/usr/bin/env python
"""Time and peak memory of the auxiliary branch: the decoder bank against plain decoders.

A step is what a training step does in the auxiliary branch: perturb z, decode with all K decoders,
L_u, and backward to the decoders' parameters and to z. Compared are
  bank                PerturbedDecoderBank by default: on a CPU its native kernel
  bank torch.compile  the same with compile=True
  bank eager          the same with compile=False
  plain               plain.py: one decoder after the other, every prediction alive until backward
  public              the authors' public code, from your own clone (--reference DIR)
in one process, by turns: medians, and ratios of each turn with their quartiles. The first call,
which compiles, is reported apart.

Peak memory, on a CPU: a process of its own, its peak RSS minus that of an idle process which only
built the same inputs. What the compiler leaves in the bank's process is thus counted, against the
bank. In the table by perturbation, in the column "a step" and on a GPU: the peak during one warm
step on top of inputs and parameters, see `_measure.step_peak`.

Examples:
    python benchmarks/auxiliary_branch.py
    python benchmarks/auxiliary_branch.py --tables main --reference ../CCT --json result.json
    python benchmarks/auxiliary_branch.py --device cuda --images 10 --dtype tf32
"""

import argparse
import copy
import dataclasses
import json
import math
import statistics
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from _measure import (
    Step,
    alternate,
    autocast,
    copy_bandwidth,
    count_kernels,
    exponential_rate,
    machine,
    matmul_rate,
    mebibytes,
    once,
    paired_ratio,
    process_peak,
    quartiles,
    ratio,
    say,
    seconds,
    set_precision,
    step_peak,
)
from _public_code import PublicCode, load_public_code
from _quiet import add_busy_option, require_quiet
from mmengine.config import Config
from mmengine.registry import init_default_scope
from plain import PlainBank, consistency_mse
from torch import Tensor, nn

from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.utils.markdown import markdown_table

PROJECT = Path(__file__).resolve().parents[1]
TABLES = ('main', 'perturbations', 'scaling', 'fraction', 'widths', 'places', 'floor')
ROUNDING = {'float32': 1e-4, 'tf32': 1e-2, 'bfloat16': 1e-2}  # of a loss
SETTING = Config.fromfile(PROJECT / 'configs/_base_/models/cct.py').model.auxiliary_head


@dataclasses.dataclass(frozen=True)
class Case:
    """One size of the problem.

    Attributes:
        images: N.
        channels: D.
        height: h, of z.
        width: w, of z.
        classes: C.
        stride: s.
        decoders: Number of decoders by perturbation.
        position_fraction: Share of the feature positions that the losses look at.
        hidden: B, the hidden width of the decoders; None for C.
    """

    images: int
    channels: int
    height: int
    width: int
    classes: int
    stride: int
    decoders: tuple[tuple[str, int], ...]
    position_fraction: float = 1.0
    hidden: int | None = None

    @property
    def num_decoders(self) -> int:
        """K."""
        return sum(count for _, count in self.decoders)

    def __str__(self) -> str:
        return (
            f'K={self.num_decoders}, C={self.classes}, stride {self.stride}, z '
            f'{self.images}×{self.channels}×{self.height}×{self.width}'
        )


def paper_mix(num_decoders: int) -> tuple[tuple[str, int], ...]:
    """The paper's mix of perturbations scaled to another number of decoders.

    Args:
        num_decoders: K; the paper's is 30.

    Returns:
        Number of decoders by perturbation, rounded by largest remainder.
    """
    counts = {name: p.num_decoders for name, p in SETTING.perturbations.items()}
    share = {name: n * num_decoders / sum(counts.values()) for name, n in counts.items()}
    rounded = {name: int(value) for name, value in share.items()}
    by_remainder = sorted(share, key=lambda name: rounded[name] - share[name])
    for name in by_remainder[: num_decoders - sum(rounded.values())]:
        rounded[name] += 1
    return tuple((name, n) for name, n in rounded.items() if n)


class Branch:
    """The auxiliary branch at one size, with each implementation, on the same inputs.

    The main prediction is smooth with a few objects on a background of class 0, so that masks and
    cut-outs have something to do.

    Args:
        case: The size.
        options: The command line: device, dtype, reference.
    """

    def __init__(self, case: Case, options: argparse.Namespace) -> None:
        self.case, self.options = case, options
        self.device, self.dtype = options.device, options.dtype
        self.public = _public_code(options.reference) if options.reference else None
        torch.manual_seed(0)
        z = torch.randn(case.images, case.channels, case.height, case.width).relu()
        self.z = z.to(self.device).requires_grad_()
        coarse = 3 * torch.randn(case.images, case.classes, 6, 6)
        coarse[:, 0] += 5
        size = (case.height * case.stride, case.width * case.stride)
        self.seg_logits = F.interpolate(coarse.to(self.device), size, mode='bilinear')

    def make(self, name: str) -> Step:
        """Builds an implementation.

        Args:
            name: 'bank', 'bank torch.compile', 'bank eager', 'plain', 'public', 'main decoder'.

        Returns:
            Its step, forward and backward; it returns the loss.
        """
        if name.startswith('bank'):
            ways: dict[str, bool | str] = {'bank': 'auto', 'bank torch.compile': True}
            bank = self._bank(compile=not self.options.no_compile and ways.get(name, False))
            return self._step(bank, lambda: bank.loss((self.z,), self.seg_logits, [])['loss'])
        if name == 'public':
            return self._public_step()
        bank = self._bank(compile=False)
        plain = PlainBank(bank).to(self.device)
        if name == 'main decoder':  # a decoder without a perturbation
            return self._step(plain, lambda: self._plain_loss([plain.decoders[0](self.z)]))
        return self._step(
            plain, lambda: self._plain_loss(plain.predict(self.z, self.seg_logits, [0]))
        )

    def _bank(self, compile: bool | str) -> PerturbedDecoderBank:
        torch.manual_seed(0)
        perturbations = {}
        for name, count in self.case.decoders:
            perturbations[name] = copy.deepcopy(SETTING.perturbations[name])
            perturbations[name].num_decoders = count
        bank = PerturbedDecoderBank(
            self.case.channels,
            self.case.classes,
            perturbations,
            # for any number of classes the loss that the others compute
            dict(SETTING.loss_consistency, reference_classes=None),
            stride=self.case.stride,
            channels=self.case.hidden,
            context_classes=(0,),
            position_fraction=self.case.position_fraction,
            compile=compile,
        )
        return bank.to(self.device)

    def _plain_loss(self, predictions: list[Tensor]) -> Tensor:
        probabilities = self.seg_logits.softmax(1)
        weight = SETTING.loss_consistency.loss_weight
        return weight * consistency_mse([p.float() for p in predictions], probabilities)

    def _public_step(self) -> Step:
        public, case = self.public, self.case
        assert public is not None
        decoders = public.auxiliary_decoders(
            dict(case.decoders), case.channels, case.classes, case.stride
        ).to(self.device)
        weight = SETTING.loss_consistency.loss_weight

        def loss() -> Tensor:
            predictions = [decoder(self.z, self.seg_logits) for decoder in decoders]
            return weight * public.consistency(predictions, self.seg_logits.softmax(1))

        return self._step(decoders, loss)

    def _step(self, module: nn.Module, loss: Step) -> Step:

        def step() -> float:
            self.z.grad = None
            module.zero_grad(set_to_none=True)
            with autocast(self.device, self.dtype):
                value: Any = loss()
            value.backward()
            return value.detach()

        return step


@cache
def _public_code(directory: str) -> PublicCode:
    return load_public_code(directory)


def prepare(options: argparse.Namespace) -> None:
    """Sets threads, precision and registry scope.

    Args:
        options: The command line.
    """
    torch.set_num_threads(options.threads)
    set_precision(options.dtype)
    init_default_scope('mmseg')


def implementations(options: argparse.Namespace) -> list[str]:
    """What is compared.

    Args:
        options: The command line.

    Returns:
        Names for `Branch.make`, the bank first.
    """
    return ['bank', 'plain'] + ['public'] * bool(options.reference)


def main_case(options: argparse.Namespace) -> Case:
    """The size that the command line asks for.

    Args:
        options: The command line.

    Returns:
        The case.
    """
    height, width = options.size
    return Case(
        options.images,
        options.channels,
        height,
        width,
        options.classes,
        options.stride,
        paper_mix(options.decoders),
        options.position_fraction,
    )


def main_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """All implementations at one size.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    case = main_case(options)
    branch = Branch(case, options)
    names = implementations(options)
    if not options.no_compile:
        names[1:1] = ['bank torch.compile', 'bank eager']
    steps = {name: branch.make(name) for name in names}
    times = alternate(steps, options.repeats, options.device)
    losses = {name: _loss_of_draws(step) for name, step in steps.items()}
    require_equal_losses(losses, options.dtype)
    figures: dict[str, Any] = {name: dict(time=t, loss=losses[name]) for name, t in times.items()}
    for name, step in steps.items():
        figures[name]['step_memory'] = step_peak(step, options.device)
        if options.device == 'cuda':
            figures[name]['kernels'], figures[name]['copies'] = count_kernels(step)
    if options.device == 'cpu':
        del steps, branch
        for name in names:
            say(f'  memory of {name} in its own process')
            figures[name]['memory'] = process_memory(name, case)
    else:
        for name in names:
            figures[name]['memory'] = figures[name]['step_memory']
    bank, plain = figures['bank'], figures['plain']
    rows = [
        [
            name,
            seconds(row['time']['median']),
            f'{seconds(row["time"]["min"])}–{seconds(row["time"]["max"])}',
            paired_ratio(row['time'], bank['time']),
            paired_ratio(row['time'], bank['time'], 'cpu_times'),
            mebibytes(row['memory']),
            ratio(row['memory'], bank['memory']),
            mebibytes(row['step_memory']),
            seconds(row['time']['first']),
            f'{row["loss"]:.4f}',
            *([str(row['kernels']), str(row['copies'])] if 'kernels' in row else []),
        ]
        for name, row in figures.items()
    ]
    columns = [
        '',
        'forward + backward',
        'range',
        'over bank',
        'CPU time over bank',
        'peak memory',
        'over bank',
        'a step',
        'first call',
        'loss',
    ]
    if options.device == 'cuda':
        columns += ['kernels', 'copies']
    summary = dict(
        case=str(case),
        time_ratio=quartiles(plain['time'], bank['time'])[1],
        time_ratio_quartiles=quartiles(plain['time'], bank['time']),
        cpu_time_ratio=quartiles(plain['time'], bank['time'], 'cpu_times')[1],
        memory_ratio=_quotient(bank['memory'], plain['memory']),
        step_memory_ratio=_quotient(bank['step_memory'], plain['step_memory']),
        definitions='time_ratio: plain over bank, by turns; memory_ratio: bank over plain',
        implementations=figures,
    )
    if 'public' in figures:
        public = figures['public']
        summary['public_time_ratio'] = quartiles(public['time'], bank['time'])[1]
        summary['public_time_ratio_quartiles'] = quartiles(public['time'], bank['time'])
        summary['public_memory_ratio'] = _quotient(bank['memory'], public['memory'])
    heading = f'### The auxiliary branch: {case}, {options.dtype}'
    verdict = (
        f'Plain over bank: {paired_ratio(plain["time"], bank["time"])}; memory plain over bank '
        f'{ratio(plain["memory"], bank["memory"])}.'
    )
    return f'{heading}\n\n{markdown_table(columns, rows)}\n\n{verdict}', summary


def _loss_of_draws(step: Step) -> float:
    """The loss of the draws of one seed, which all banks share."""
    torch.manual_seed(0)
    return float(step())  # type: ignore[arg-type]


def require_equal_losses(losses: dict[str, float], dtype: str) -> None:
    """Refuses to compare the times of banks that do not compute the same.

    Args:
        losses: By implementation, on the same draws.
        dtype: What `--dtype` says.

    Raises:
        SystemExit: If a bank's loss is not the uncompiled one's but for rounding.
    """
    eager = losses.get('bank eager')
    for name, loss in losses.items():
        if eager is None or not name.startswith('bank'):
            continue
        if not math.isclose(loss, eager, rel_tol=ROUNDING[dtype]):
            raise SystemExit(
                f'error: {name}: a loss of {loss:.6g}, but {eager:.6g} uncompiled; expected the '
                f'same within {ROUNDING[dtype]:.0e}'
            )


def _quotient(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def process_memory(name: str, case: Case) -> int:
    """Peak RSS of a process that builds the inputs and takes a few steps, over an idle one's.

    Args:
        name: An implementation.
        case: The size, of the paper's mix of decoders.

    Returns:
        Bytes.
    """
    return max(_child_peak(name, case) - _child_peak('idle', case), 0)


@cache
def _child_peak(name: str, case: Case) -> int:
    command = [
        sys.executable,
        __file__,
        *sys.argv[1:],
        '--decoders',
        str(case.num_decoders),
        '--classes',
        str(case.classes),
        '--images',
        str(case.images),
        '--stride',
        str(case.stride),
        '--position-fraction',
        str(case.position_fraction),
        '--child',
        name,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'the process that measures the memory of {name} failed:\n{done.stderr}')
    return int(done.stdout.splitlines()[-1])


def child(name: str, options: argparse.Namespace) -> None:
    """The other end of `process_memory`; prints the peak.

    Args:
        name: An implementation, or 'idle'.
        options: The command line.
    """
    branch = Branch(main_case(options), options)
    if name != 'idle':
        step = branch.make(name)
        for _ in range(2):
            step()
    print(process_peak())


def perturbations_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """One decoder each, at the sizes of the paper's overhead table.

    The paper's "input size" is that of z, of one image: 512×96×96 are 19 MB, and 768×768 logits of
    21 classes are 50 MB, held twice at the last level (convolution and shuffle); with the level
    before that makes 130 MB of the 139 it reports for the main decoder. An image of 96×96 would
    have a z of 12×12, and 2 MB in all.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    figures: dict[str, Any] = {}
    rows = []
    for height, width in options.map_sizes:
        for name in ['main decoder', *SETTING.perturbations]:
            say(f'  {height}×{width} {name}')
            key = 'dropout' if name == 'main decoder' else name
            case = Case(
                1, options.channels, height, width, options.classes, options.stride, ((key, 1),)
            )
            branch = Branch(case, options)
            names = [name] if name == 'main decoder' else implementations(options)
            steps = {n: branch.make(n) for n in names}
            times = alternate(steps, options.repeats, options.device)
            memory = {n: step_peak(step, options.device) for n, step in steps.items()}
            figures[f'{height}x{width} {name}'] = dict(time=times, memory=memory)
            time = {n: t['median'] for n, t in times.items()}
            if name == 'main decoder':
                time, memory = dict(plain=time[name]), dict(plain=memory[name])
            cells = [f'{name}, {height}×{width}']
            for n in implementations(options):
                cells += [seconds(time.get(n)), mebibytes(memory.get(n))]
            cells += [
                paired_ratio(times['plain'], times['bank']) if 'bank' in times else '–',
                ratio(memory['plain'], memory.get('bank')),
            ]
            rows.append(cells)
    columns = ['one decoder, z']
    for n in implementations(options):
        columns += [n, 'memory']
    columns += ['plain over bank, time', 'memory']
    heading = (
        f'### One decoder of each kind: z 1×{options.channels}×h×w, C={options.classes}, '
        f'forward + backward, memory of a step, {options.dtype}'
    )
    return f'{heading}\n\n{markdown_table(columns, rows)}', figures


def scaling_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The bank as K, C, N and the stride grow, one at a time.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    base = main_case(options)
    series: dict[str, list[tuple[str, Case]]] = {
        'K': [
            (f'K={k}', dataclasses.replace(base, decoders=paper_mix(k)))
            for k in options.scale_decoders
        ],
        'C': [(f'C={c}', dataclasses.replace(base, classes=c)) for c in options.scale_classes],
        'N': [(f'N={n}', dataclasses.replace(base, images=n)) for n in options.scale_images],
        'stride': [
            (f'stride {s}', dataclasses.replace(base, stride=s)) for s in options.scale_strides
        ],
    }
    return _bank_series('### How the bank grows', base, series, options)


def fraction_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The bank on a share of the feature positions.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    base = main_case(options)
    series = dict(
        fraction=[
            (f'position_fraction {f}', dataclasses.replace(base, position_fraction=f))
            for f in (1.0, 0.5, 0.25)
        ]
    )
    return _bank_series('### A share of the feature positions', base, series, options)


def widths_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The bank with a hidden width, for several numbers of classes.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    base = main_case(options)
    figures: dict[str, Any] = {}
    rows = []
    for classes in options.width_classes:
        cases = {
            f'C={classes}, channels {hidden or "C"}': dataclasses.replace(
                base, classes=classes, hidden=hidden
            )
            for hidden in (None, *options.widths)
        }
        say('  ' + ', '.join(cases))
        steps = {label: Branch(case, options).make('bank') for label, case in cases.items()}
        times = alternate(steps, options.repeats, options.device)
        narrow = next(iter(times.values()))
        for label, step in steps.items():
            memory = step_peak(step, options.device)
            figures[label] = dict(time=times[label], step_memory=memory)
            rows.append(
                [
                    label,
                    seconds(times[label]['median']),
                    paired_ratio(times[label], narrow),
                    paired_ratio(times[label], narrow, 'cpu_times'),
                    mebibytes(memory),
                ]
            )
    columns = ['bank', 'forward + backward', 'over C', 'CPU time over C', 'memory of a step']
    heading = f'### The width of the decoders: else {base}, {options.dtype}'
    return f'{heading}\n\n{markdown_table(columns, rows)}', figures


def places_table(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The bank on other features of the same images: other channels, another stride.

    Args:
        options: The command line.

    Returns:
        The table and its figures.
    """
    base = main_case(options)
    height, width = (side * base.stride for side in (base.height, base.width))
    series = dict(
        places=[
            (
                f'D={channels}, stride {stride}',
                dataclasses.replace(
                    base,
                    channels=channels,
                    stride=stride,
                    height=height // stride,
                    width=width // stride,
                ),
            )
            for channels, stride in options.places
        ]
    )
    return _bank_series('### Other features of the same images', base, series, options)


def _bank_series(
    heading: str, base: Case, series: dict[str, list[tuple[str, Case]]], options: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    """Measures cases by turns within each series; ratios are to its first one."""
    figures: dict[str, Any] = {}
    rows = []
    for cases in series.values():
        if len(cases) < 2:  # nothing to compare
            continue
        say('  ' + ', '.join(label for label, _ in cases))
        steps = {label: Branch(case, options).make('bank') for label, case in cases}
        times = alternate(steps, options.repeats, options.device)
        if options.device == 'cpu':
            memory = {label: process_memory('bank', case) for label, case in cases}
        else:
            memory = {label: step_peak(step, options.device) for label, step in steps.items()}
        first = cases[0][0]
        for label in steps:
            figures[label] = dict(time=times[label], memory=memory[label])
            rows.append(
                [
                    label,
                    seconds(times[label]['median']),
                    paired_ratio(times[label], times[first]),
                    mebibytes(memory[label]),
                    ratio(memory[label], memory[first]),
                    seconds(times[label]['first']),
                ]
            )
    columns = [
        'bank',
        'forward + backward',
        'over the first',
        'peak memory',
        'over the first',
        'first call',
    ]
    return f'{heading}: else {base}, {options.dtype}\n\n{markdown_table(columns, rows)}', figures


def chain_flops(case: Case) -> float:
    """Of the sub-pixel convolutions of one decoder, forward: Σ_l 4^l · 2 · 4C · C · P.

    Args:
        case: The size.

    Returns:
        FLOPs.
    """
    positions = case.images * case.height * case.width
    return 8 * case.classes**2 * positions * (case.stride**2 - 1) / 3


def work(case: Case) -> dict[str, float]:
    """The least work of a step of the bank, counted by hand.

    Args:
        case: The size.

    Returns:
        FLOPs of the matrix products by stage, `exponentials`, and `bytes`: each input read once,
        each result written once.
    """
    k, c, s = case.num_decoders, case.classes, case.stride
    positions = case.images * case.height * case.width
    projection = 2 * case.channels * c * positions
    adversarial = dict(case.decoders).get('vat', 0)
    z, target = case.channels * positions, c * s**2 * positions
    parameters = k * (case.channels * c + s.bit_length() * 4 * c * c)
    return {
        'projections': 3.0 * k * projection,  # forward, with respect to z, to the weights
        'sub-pixel convolutions': 3.0 * k * chain_flops(case),
        # clean projection; forward, its tangent, and back to the features
        'VAT': adversarial * (projection + 3.0 * chain_flops(case)),
        'exponentials': float((k + adversarial) * target + target),
        'bytes': 4.0 * (2 * z + target + 3 * parameters),
    }


def onednn_rate(size: int) -> float:
    """Rate of a float32 product by oneDNN, which on other processors than Intel's outruns MKL.

    Args:
        size: Rows and columns of the matrices.

    Returns:
        FLOP per second; 0 where PyTorch lacks the operator, an internal one.
    """
    if not hasattr(torch.ops.mkldnn, '_linear_pointwise'):
        return 0.0
    a, b = torch.randn(2, size, size)
    product = partial(torch.ops.mkldnn._linear_pointwise, a, b, None, 'none', [], '')
    return 2 * size**3 / statistics.median(once(product, 'cpu') for _ in range(9))


def floor_table(
    options: argparse.Namespace, main: dict[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Hand-counted work against the machine's measured rates.

    Args:
        options: The command line.
        main: Figures of `main_table` of the same run, if there are any.

    Returns:
        The table and its figures.
    """
    case, device = main_case(options), options.device
    k, c = case.num_decoders, case.classes
    positions = case.images * case.height * case.width
    large = 2048 if device == 'cpu' else 8192
    rates = {
        'GEMM, large': matmul_rate(1, large, large, large, device, options.dtype),
        'GEMM, large, by oneDNN': onednn_rate(large) if device == 'cpu' else 0.0,
        'GEMM, projections': matmul_rate(
            case.images, k * c, case.channels, case.height * case.width, device, options.dtype
        ),
        'GEMM, sub-pixel convolutions': matmul_rate(
            k, 4 * c, c, min(positions, 2**14), device, options.dtype
        ),
    }
    exponential, bandwidth = exponential_rate(device), copy_bandwidth(device)
    count = work(case)
    flops = sum(count[key] for key in ('projections', 'sub-pixel convolutions', 'VAT'))
    floors = {
        'matrix products, at the rate of a large GEMM': (
            flops / max(rates['GEMM, large'], rates['GEMM, large, by oneDNN'])
        ),
        "matrix products, at these shapes' rates": (
            count['projections'] / rates['GEMM, projections']
            + (flops - count['projections']) / rates['GEMM, sub-pixel convolutions']
        ),
        'exponentials': count['exponentials'] / exponential,
        'bytes, each once': count['bytes'] / bandwidth,
    }
    rows = [
        [f'{key} (FLOP)', f'{count[key] / 1e9:.2f} G', '', '']
        for key in ('projections', 'sub-pixel convolutions', 'VAT')
    ]
    rows += [[key, '', f'{rate / 1e9:.0f} GFLOP/s', ''] for key, rate in rates.items() if rate]
    amounts = [flops, flops, count['exponentials'], count['bytes']]
    measured = ['', '', f'{exponential / 1e9:.2f} G/s', f'{bandwidth / 1e9:.1f} GB/s']
    rows += [
        [key, f'{amount / 1e9:.2f} G', rate, seconds(value)]
        for (key, value), amount, rate in zip(floors.items(), amounts, measured)
    ]
    if main:
        time = main['implementations']['bank']['time']['median']
        rows.append(['the bank, measured', '', '', seconds(time)])
    figures = dict(
        work=count,
        rates=rates,
        exponentials_per_s=exponential,
        bytes_per_s=bandwidth,
        floors=floors,
    )
    heading = f'### Where the floor is: {case}, {options.dtype}'
    return f'{heading}\n\n{markdown_table(["", "amount", "measured rate", "time"], rows)}', figures


def parse_args() -> argparse.Namespace:
    """Reads the command line.

    Returns:
        The options.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--device', choices=['cpu', 'cuda'], default='cpu')
    parser.add_argument(
        '--dtype',
        choices=['float32', 'tf32', 'bfloat16'],
        default='float32',
        help='bfloat16: under autocast; tf32: on a GPU',
    )
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--repeats', type=int, default=7, help='readings per median')
    parser.add_argument('--tables', nargs='+', choices=TABLES, default=TABLES)
    parser.add_argument('--decoders', type=int, default=30, metavar='K')
    parser.add_argument('--classes', type=int, default=21, metavar='C')
    parser.add_argument('--images', type=int, default=2, metavar='N')
    parser.add_argument('--channels', type=int, default=512, metavar='D')
    parser.add_argument('--size', type=int, nargs=2, default=[40, 40], metavar=('h', 'w'))
    parser.add_argument('--stride', type=int, default=8)
    parser.add_argument('--position-fraction', type=float, default=1.0, metavar='F')
    parser.add_argument(
        '--map-sizes',
        type=_size,
        nargs='+',
        default=[(96, 96), (256, 128)],
        metavar='hxw',
        help='sizes of z in the table by perturbation',
    )
    parser.add_argument('--scale-decoders', type=int, nargs='+', default=[30, 60, 120], metavar='K')
    parser.add_argument('--scale-classes', type=int, nargs='+', default=[21, 60, 150], metavar='C')
    parser.add_argument('--scale-images', type=int, nargs='+', default=[1, 2, 4], metavar='N')
    parser.add_argument('--scale-strides', type=int, nargs='+', default=[4, 8, 16], metavar='s')
    parser.add_argument('--width-classes', type=int, nargs='+', default=[2, 7, 11, 21], metavar='C')
    parser.add_argument('--widths', type=int, nargs='+', default=[32, 64], metavar='B')
    parser.add_argument(
        '--places',
        type=_size,
        nargs='+',
        default=[(512, 8), (2048, 8), (512, 4), (256, 4), (512, 16)],
        metavar='Dxs',
        help='channels and stride of z, such as 2048x8',
    )
    parser.add_argument('--no-compile', action='store_true', help='run the bank uncompiled')
    parser.add_argument('--reference', metavar='DIR', help="your clone of the authors' public code")
    parser.add_argument('--json', metavar='FILE', help='where to write all figures')
    add_busy_option(parser)
    parser.add_argument('--child', help=argparse.SUPPRESS)
    return parser.parse_args()


def _size(text: str) -> tuple[int, int]:
    height, width = text.lower().split('x')
    return int(height), int(width)


def main() -> None:
    """Measures, prints the tables, writes the figures."""
    options = parse_args()
    prepare(options)
    if options.child:
        child(options.child, options)
        return
    require_quiet(options.threads, options.allow_busy)
    about = machine(options.device)
    say(markdown_table(['machine', ''], [[key, value] for key, value in about.items()]))
    results: dict[str, Any] = dict(machine=about, dtype=options.dtype, device=options.device)
    makers = dict(
        main=main_table,
        perturbations=perturbations_table,
        scaling=scaling_table,
        fraction=fraction_table,
        widths=widths_table,
        places=places_table,
    )
    for name in TABLES:
        if name not in options.tables:
            continue
        say(f'\nmeasuring: {name}')
        if name == 'floor':
            text, figures = floor_table(options, results.get('main'))
        else:
            text, figures = makers[name](options)
        say(f'\n{text}')
        results[name] = figures
        if name == 'main':
            results.update({key: figures[key] for key in ('time_ratio', 'memory_ratio')})
        if options.json:
            Path(options.json).write_text(json.dumps(results, indent=1), encoding='utf-8')


if __name__ == '__main__':
    main()
