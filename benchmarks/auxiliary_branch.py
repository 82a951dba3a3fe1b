#!/usr/bin/env python
"""Time and peak memory of the auxiliary branch: the decoder bank against plain decoders.

A step is what a training step does in the auxiliary branch: perturb z, decode with all K decoders,
compute L_u, and go backward to the decoders' parameters and to z. Compared are
  bank                PerturbedDecoderBank by default: on a CPU its native kernel
  bank torch.compile  the same with compile=True
  bank eager          the same with compile=False
  plain               plain.py: one decoder after the other, every prediction alive until backward
  public              the authors' public code, from your own clone (--reference DIR)
in one process, taking turns. Tables give medians, and the ratios within a turn with their
quartiles. The first call, which compiles, is reported separately.

Peak memory on a CPU is the peak RSS of a separate process minus that of an idle process that only
built the same inputs. So what the compiler leaves in the bank's process counts against the bank. In
the tables by perturbation and width, in the column "a step" and on a GPU, it is the peak during one
warm step on top of inputs and parameters, see `_measure.step_peak`.

Examples:
    python benchmarks/auxiliary_branch.py
    python benchmarks/auxiliary_branch.py --tables main --reference ../CCT --json result.json
    python benchmarks/auxiliary_branch.py --device cuda --images 10 --dtype tf32
"""

import argparse
import copy
import json
import math
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from _measure import (
    PROJECT,
    Step,
    alternate,
    autocast,
    begin,
    benchmark_parser,
    copy_bandwidth,
    count_kernels,
    exponential_rate,
    matmul_rate,
    mebibytes,
    once,
    paired_ratio,
    prepare,
    process_peak,
    quartiles,
    quotient,
    ratio,
    save,
    say,
    say_table,
    seconds,
    step_peak,
    time_cells,
)
from _public_code import load_public_code
from mmengine.config import Config
from plain import PlainBank, consistency_mse
from torch import Tensor, nn

from mmseg_cct.models import PerturbedDecoderBank

ROUNDING = {'float32': 1e-4, 'tf32': 1e-2, 'bfloat16': 1e-2}  # relative
SETTING = Config.fromfile(PROJECT / 'configs/_base_/models/cct.py').model.auxiliary_head
Figures = dict[str, Any]


@dataclass(frozen=True)
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
        position_fraction: Share of the feature positions that the losses use.
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
    """The paper's mix of 30 decoders scaled to another number, rounded by largest remainder."""
    counts = {name: p.num_decoders for name, p in SETTING.perturbations.items()}
    share = {name: n * num_decoders / sum(counts.values()) for name, n in counts.items()}
    rounded = {name: int(value) for name, value in share.items()}
    by_remainder = sorted(share, key=lambda name: rounded[name] - share[name])
    for name in by_remainder[: num_decoders - sum(rounded.values())]:
        rounded[name] += 1
    return tuple((name, n) for name, n in rounded.items() if n)


class Branch:
    """The auxiliary branch at one size, the same inputs for each implementation.

    The main prediction is smooth with a few objects on a background of class 0, so that masks and
    cut-outs have something to do.

    Args:
        case: The size.
        options: The command line: device, dtype, reference.
    """

    def __init__(self, case: Case, options: argparse.Namespace) -> None:
        self.case, self.options = case, options
        torch.manual_seed(0)
        z = torch.randn(case.images, case.channels, case.height, case.width).relu()
        self.z = z.to(options.device).requires_grad_()
        coarse = 3 * torch.randn(case.images, case.classes, 6, 6)
        coarse[:, 0] += 5
        size = (case.height * case.stride, case.width * case.stride)
        self.seg_logits = F.interpolate(coarse.to(options.device), size, mode='bilinear')

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
        plain = PlainBank(self._bank(compile=False)).to(self.options.device)
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
            # the loss that the others compute, for any number of classes
            dict(SETTING.loss_consistency, reference_classes=None),
            stride=self.case.stride,
            channels=self.case.hidden,
            context_classes=(0,),
            position_fraction=self.case.position_fraction,
            compile=compile,
        )
        return bank.to(self.options.device)

    def _plain_loss(self, predictions: list[Tensor]) -> Tensor:
        probabilities = self.seg_logits.softmax(1)
        weight = SETTING.loss_consistency.loss_weight
        return weight * consistency_mse([p.float() for p in predictions], probabilities)

    def _public_step(self) -> Step:
        public, case = _public_code(self.options.reference), self.case
        decoders = public.auxiliary_decoders(
            dict(case.decoders), case.channels, case.classes, case.stride
        ).to(self.options.device)
        weight = SETTING.loss_consistency.loss_weight

        def loss() -> Tensor:
            predictions = [decoder(self.z, self.seg_logits) for decoder in decoders]
            return weight * public.consistency(predictions, self.seg_logits.softmax(1))

        return self._step(decoders, loss)

    def _step(self, module: nn.Module, loss: Step) -> Step:

        def step() -> float:
            self.z.grad = None
            module.zero_grad(set_to_none=True)
            with autocast(self.options):
                value: Any = loss()
            value.backward()
            return value.detach()

        return step


_public_code = cache(load_public_code)


def implementations(options: argparse.Namespace) -> list[str]:
    """Lists what is compared: names for `Branch.make`, the bank first."""
    return ['bank', 'plain'] + ['public'] * bool(options.reference)


def main_case(options: argparse.Namespace) -> Case:
    """The size that the command line asks for."""
    return Case(
        options.images,
        options.channels,
        *options.size,
        options.classes,
        options.stride,
        paper_mix(options.decoders),
        options.position_fraction,
    )


# ---------------------------------------------------------------------------------- one size
def main_table(options: argparse.Namespace) -> Figures:
    """Compares all implementations at one size."""
    case = main_case(options)
    branch = Branch(case, options)
    names = implementations(options)
    if not options.no_compile:
        names[1:1] = ['bank torch.compile', 'bank eager']
    steps = {name: branch.make(name) for name in names}
    times = alternate(steps, options.repeats, options.device)
    losses = {name: _loss_of_draws(step) for name, step in steps.items()}
    require_equal_losses(losses, options.dtype)

    figures: Figures = {}
    for name, step in steps.items():
        peak = step_peak(step, options.device)
        figures[name] = dict(time=times[name], loss=losses[name], step_memory=peak, memory=peak)
        if options.device == 'cuda':
            figures[name] |= count_kernels(step)
    if options.device == 'cpu':
        del steps, branch
        for name in names:
            say(f'  memory of {name} in its own process')
            figures[name]['memory'] = process_memory(name, case)

    bank, plain = figures['bank'], figures['plain']
    say_table(
        f'The auxiliary branch: {case}, {options.dtype}',
        [
            [
                ('', name),
                *time_cells('forward + backward', row['time'], bank['time'], 'over bank'),
                ('peak memory', mebibytes(row['memory'])),
                ('over bank', ratio(row['memory'], bank['memory'])),
                ('a step', mebibytes(row['step_memory'])),
                ('first call', seconds(row['time']['first'])),
                ('loss', f'{row["loss"]:.4f}'),
                *((key, str(row[key])) for key in ('kernels', 'copies') if key in row),
            ]
            for name, row in figures.items()
        ],
    )
    say(
        f'\nPlain over bank: {paired_ratio(plain["time"], bank["time"])}; memory plain over bank '
        f'{ratio(plain["memory"], bank["memory"])}.'
    )
    summary = dict(
        case=str(case),
        cpu_time_ratio=quartiles(plain['time'], bank['time'], 'cpu_times')[1],
        step_memory_ratio=quotient(bank['step_memory'], plain['step_memory']),
        definitions='time_ratio: plain over bank, by turns; memory_ratio: bank over plain',
        implementations=figures,
    )
    for prefix, row in (('', plain), ('public_', figures.get('public'))):
        if row:
            summary[f'{prefix}time_ratio_quartiles'] = quartiles(row['time'], bank['time'])
            summary[f'{prefix}time_ratio'] = summary[f'{prefix}time_ratio_quartiles'][1]
            summary[f'{prefix}memory_ratio'] = quotient(bank['memory'], row['memory'])
    return summary


def _loss_of_draws(step: Step) -> float:
    """The loss under one seed, whose draws all banks share."""
    torch.manual_seed(0)
    return float(step())  # type: ignore[arg-type]


def require_equal_losses(losses: dict[str, float], dtype: str) -> None:
    """Refuses to compare the times of banks that do not compute the same loss.

    Args:
        losses: By implementation, on the same draws.
        dtype: Value of `--dtype`.

    Raises:
        SystemExit: A bank's loss differs from the uncompiled one's by more than rounding.
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


def process_memory(name: str, case: Case) -> int:
    """Peak RSS, in bytes, of a process that takes a few steps, above that of an idle one."""
    # an idle process has only the inputs, which are the same for any decoders
    inputs = replace(case, decoders=(), position_fraction=1.0, hidden=None)
    return max(_child_peak(name, case) - _child_peak('idle', inputs), 0)


@cache
def _child_peak(name: str, case: Case) -> int:
    command = [sys.executable, __file__, *sys.argv[1:], '--child', name, json.dumps(asdict(case))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'the process that measures the memory of {name} failed:\n{done.stderr}')
    return int(done.stdout.splitlines()[-1])


def child(name: str, case: Case, options: argparse.Namespace) -> None:
    """The child process of `process_memory`: prints its peak."""
    prepare(options)
    branch = Branch(case, options)
    if name != 'idle':
        step = branch.make(name)
        for _ in range(2):
            step()
    print(process_peak())


def perturbations_table(options: argparse.Namespace) -> Figures:
    """Compares one decoder of each kind, at the sizes of the paper's overhead table.

    The paper's "input size" is that of z for one image: 512×96×96 values are 19 MB, and 768×768
    logits of 21 classes are 50 MB, held twice at the last level (convolution and shuffle). With the
    level before, this makes 130 MB of the 139 MB that it reports for the main decoder. An image of
    96×96 would have a z of 12×12 and need 2 MB in all.
    """
    figures: Figures = {}
    rows = []
    for height, width in options.map_sizes:
        for name in ['main decoder', *SETTING.perturbations]:
            say(f'  {height}×{width} {name}')
            alone = name == 'main decoder'
            case = replace(
                main_case(options),
                images=1,
                height=height,
                width=width,
                decoders=(('dropout' if alone else name, 1),),
                position_fraction=1.0,
            )
            branch = Branch(case, options)
            steps = {n: branch.make(n) for n in ([name] if alone else implementations(options))}
            times = alternate(steps, options.repeats, options.device)
            memory = {n: step_peak(step, options.device) for n, step in steps.items()}
            figures[f'{height}x{width} {name}'] = dict(time=times, memory=memory)
            # an unperturbed decoder is a plain one
            column = {'plain': name} if alone else {n: n for n in steps}
            cells = [('one decoder, z', f'{name}, {height}×{width}')]
            for n in implementations(options):
                found = column.get(n)
                cells += [
                    (n, seconds(times[found]['median'] if found else None)),
                    ('memory', mebibytes(memory[found] if found else None)),
                ]
            time = '–' if alone else paired_ratio(times['plain'], times['bank'])
            space = ratio(memory.get('plain'), memory.get('bank'))
            rows.append([*cells, ('plain over bank, time', time), ('memory', space)])
    say_table(
        f'One decoder of each kind: z 1×{options.channels}×h×w, C={options.classes}, '
        f'forward + backward, memory of a step, {options.dtype}',
        rows,
    )
    return figures


# ---------------------------------------------------------------------------------- series
def scaling_table(options: argparse.Namespace) -> Figures:
    """Measures the bank as K, C, N and the stride grow, one at a time."""
    base = main_case(options)
    series = [
        {f'K={k}': replace(base, decoders=paper_mix(k)) for k in options.scale_decoders},
        {f'C={c}': replace(base, classes=c) for c in options.scale_classes},
        {f'N={n}': replace(base, images=n) for n in options.scale_images},
        {f'stride {s}': replace(base, stride=s) for s in options.scale_strides},
    ]
    return _bank_series('How the bank grows', series, options)


def fraction_table(options: argparse.Namespace) -> Figures:
    """Measures the bank on a share of the feature positions."""
    base = main_case(options)
    cases = {f'position_fraction {f}': replace(base, position_fraction=f) for f in (1.0, 0.5, 0.25)}
    return _bank_series('A share of the feature positions', [cases], options)


def places_table(options: argparse.Namespace) -> Figures:
    """Measures the bank on other features of the same images: other channels, another stride."""
    base = main_case(options)
    height, width = (side * base.stride for side in (base.height, base.width))
    cases = {
        f'D={channels}, stride {stride}': replace(
            base, channels=channels, stride=stride, height=height // stride, width=width // stride
        )
        for channels, stride in options.places
    }
    return _bank_series('Other features of the same images', [cases], options)


def widths_table(options: argparse.Namespace) -> Figures:
    """Measures the bank with a hidden width, for several numbers of classes."""
    base = main_case(options)
    series = [
        {
            f'C={classes}, channels {hidden or "C"}': replace(base, classes=classes, hidden=hidden)
            for hidden in (None, *options.widths)
        }
        for classes in options.width_classes
    ]
    return _bank_series('The width of the decoders', series, options, own_process=False)


def _bank_series(
    heading: str,
    series: list[dict[str, Case]],
    options: argparse.Namespace,
    own_process: bool = True,
) -> Figures:
    """Measures the cases of each series, which take turns; ratios are to the first case."""
    figures: Figures = {}
    rows = []
    own_process &= options.device == 'cpu'
    for cases in series:
        if len(cases) < 2:  # nothing to compare
            continue
        say('  ' + ', '.join(cases))
        steps = {label: Branch(case, options).make('bank') for label, case in cases.items()}
        times = alternate(steps, options.repeats, options.device)
        first = next(iter(cases))
        for label, step in steps.items():
            memory = (
                process_memory('bank', cases[label])
                if own_process
                else step_peak(step, options.device)
            )
            figures[label] = dict(time=times[label], memory=memory)
            rows.append(
                [
                    ('bank', label),
                    *time_cells('forward + backward', times[label], times[first], 'over the first'),
                    ('peak memory' if own_process else 'memory of a step', mebibytes(memory)),
                    ('over the first', ratio(memory, figures[first]['memory'])),
                    ('first call', seconds(times[label]['first'])),
                ]
            )
    say_table(f'{heading}: else {main_case(options)}, {options.dtype}', rows)
    return figures


# ---------------------------------------------------------------------------------- the floor
def work(case: Case) -> dict[str, float]:
    """The least work of a step of the bank, counted by hand.

    Returns:
        FLOPs of the matrix products by stage, `exponentials`, and `bytes`: each input read once,
        each result written once.
    """
    k, c, s = case.num_decoders, case.classes, case.stride
    positions = case.images * case.height * case.width
    projection = 2 * case.channels * c * positions
    chain = 8 * c**2 * positions * (s**2 - 1) / 3  # of a decoder, forward: Σ_l 4^l · 2 · 4C · C · P
    adversarial = dict(case.decoders).get('vat', 0)
    z, target = case.channels * positions, c * s**2 * positions
    parameters = k * (case.channels * c + s.bit_length() * 4 * c * c)
    return {
        'projections': 3.0 * k * projection,  # forward, and backward to z and to the weights
        'sub-pixel convolutions': 3.0 * k * chain,
        # clean projection; forward, its tangent, and back to the features
        'VAT': adversarial * (projection + 3.0 * chain),
        'exponentials': float((k + adversarial) * target + target),
        'bytes': 4.0 * (2 * z + target + 3 * parameters),
    }


def onednn_rate(size: int) -> float:
    """FLOP per second of a float32 product by oneDNN; 0 where PyTorch lacks the operator.

    On processors other than Intel's it is faster than MKL. The operator is internal to PyTorch.
    """
    if not hasattr(torch.ops.mkldnn, '_linear_pointwise'):
        return 0.0
    a, b = torch.randn(2, size, size)
    product = partial(torch.ops.mkldnn._linear_pointwise, a, b, None, 'none', [], '')
    return 2 * size**3 / statistics.median(once(product, 'cpu') for _ in range(9))


def floor_table(options: argparse.Namespace, bank: dict[str, Any] | None) -> Figures:
    """Divides the hand-counted work by the machine's measured rates.

    Args:
        options: The command line.
        bank: Figures of the bank from `main_table` of the same run, if any.
    """
    case, device = main_case(options), options.device
    k, c = case.num_decoders, case.classes
    positions = case.height * case.width
    large = 2048 if device == 'cpu' else 8192
    rate = partial(matmul_rate, device=device, dtype=options.dtype)
    rates = {
        'GEMM, large': rate(1, large, large, large),
        'GEMM, large, by oneDNN': onednn_rate(large) if device == 'cpu' else 0.0,
        'GEMM, projections': rate(case.images, k * c, case.channels, positions),
        'GEMM, sub-pixel convolutions': rate(k, 4 * c, c, min(case.images * positions, 2**14)),
    }
    exponential, bandwidth = exponential_rate(device), copy_bandwidth(device)
    count = work(case)
    stages = ('projections', 'sub-pixel convolutions', 'VAT')
    flops = sum(count[key] for key in stages)
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
    lines = [(f'{key} (FLOP)', f'{count[key] / 1e9:.2f} G', '', '') for key in stages]
    lines += [(key, '', f'{rate / 1e9:.0f} GFLOP/s', '') for key, rate in rates.items() if rate]
    amounts = [flops, flops, count['exponentials'], count['bytes']]
    measured = ['', '', f'{exponential / 1e9:.2f} G/s', f'{bandwidth / 1e9:.1f} GB/s']
    lines += [
        (key, f'{amount / 1e9:.2f} G', rate, seconds(value))
        for (key, value), amount, rate in zip(floors.items(), amounts, measured)
    ]
    if bank:
        lines.append(('the bank, measured', '', '', seconds(bank['time']['median'])))
    titles = ('', 'amount', 'measured rate', 'time')
    say_table(
        f'Where the floor is: {case}, {options.dtype}', [list(zip(titles, line)) for line in lines]
    )
    return dict(
        work=count,
        rates=rates,
        exponentials_per_s=exponential,
        bytes_per_s=bandwidth,
        floors=floors,
    )


TABLES = dict(
    main=main_table,
    perturbations=perturbations_table,
    scaling=scaling_table,
    fraction=fraction_table,
    widths=widths_table,
    places=places_table,
    floor=floor_table,
)


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__, repeats=7, threads=2, devices=True)
    parser.add_argument('--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument('--decoders', type=int, default=30, metavar='K')
    parser.add_argument('--classes', type=int, default=21, metavar='C')
    parser.add_argument('--images', type=int, default=2, metavar='N')
    parser.add_argument('--channels', type=int, default=512, metavar='D')
    parser.add_argument('--size', type=int, nargs=2, default=[40, 40], metavar=('h', 'w'))
    parser.add_argument('--stride', type=int, default=8)
    parser.add_argument('--position-fraction', type=float, default=1.0, metavar='F')
    for name, metavar, kind, default, about in (
        ('--map-sizes', 'hxw', _pair, ['96x96', '256x128'], 'sizes of z, table by perturbation'),
        ('--scale-decoders', 'K', int, [30, 60, 120], None),
        ('--scale-classes', 'C', int, [21, 60, 150], None),
        ('--scale-images', 'N', int, [1, 2, 4], None),
        ('--scale-strides', 's', int, [4, 8, 16], None),
        ('--width-classes', 'C', int, [2, 7, 11, 21], None),
        ('--widths', 'B', int, [32, 64], None),
        (
            '--places',
            'Dxs',
            _pair,
            ['512x8', '2048x8', '512x4', '256x4', '512x16'],
            'channels and stride of z, such as 2048x8',
        ),
    ):
        parser.add_argument(
            name,
            type=kind,
            nargs='+',
            default=list(map(kind, default)),
            metavar=metavar,
            help=about,
        )
    parser.add_argument('--no-compile', action='store_true', help='run the bank uncompiled')
    parser.add_argument('--reference', metavar='DIR', help="your clone of the authors' public code")
    parser.add_argument('--child', nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _pair(text: str) -> tuple[int, int]:
    first, second = text.lower().split('x')
    return int(first), int(second)


def main() -> None:
    """Measures, prints the tables, writes the figures."""
    options = parse_args()
    if options.child:
        name, values = options.child[0], json.loads(options.child[1])
        values['decoders'] = tuple(map(tuple, values['decoders']))
        child(name, Case(**values), options)
        return
    results = begin(options)
    for name, measure in TABLES.items():
        if name not in options.tables:
            continue
        say(f'\nmeasuring: {name}')
        if name == 'floor':
            bank = results['main']['implementations']['bank'] if 'main' in results else None
            results[name] = floor_table(options, bank)
        else:
            results[name] = measure(options)
        if name == 'main':
            results |= {key: results[name][key] for key in ('time_ratio', 'memory_ratio')}
        save(options, results)


if __name__ == '__main__':
    main()
