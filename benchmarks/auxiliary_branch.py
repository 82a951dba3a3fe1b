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

Peak memory is that of one warm step on top of inputs and parameters, see `_measure.step_peak`.

Examples:
    python benchmarks/auxiliary_branch.py
    python benchmarks/auxiliary_branch.py --tables main --reference ../CCT --json result.json
    python benchmarks/auxiliary_branch.py --device cuda --images 10 --dtype tf32
"""

import argparse
import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from _measure import (
    PROJECT,
    Cell,
    Step,
    autocast,
    begin,
    benchmark_parser,
    count_kernels,
    measure,
    mebibytes,
    paired_ratio,
    ratio,
    save,
    say,
    say_table,
    seconds,
    time_cells,
)
from _public_code import load_public_code
from mmengine.config import Config
from plain import PlainBank, consistency_mse
from torch import Tensor, nn

from mmseg_cct.models import PerturbedDecoderBank

SETTING = Config.fromfile(PROJECT / 'configs/_base_/models/cct.py').model.auxiliary_head
Figures = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One size of the problem."""

    images: int  # N
    channels: int  # D
    height: int  # h, of z
    width: int  # w, of z
    classes: int  # C
    stride: int  # s
    decoders: tuple[tuple[str, int], ...]  # number of decoders by perturbation
    position_fraction: float = 1.0  # share of the feature positions that the losses use

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
        """Builds the step, forward and backward, of an implementation; it returns the loss.

        They are 'bank', 'bank torch.compile', 'bank eager', 'plain', 'public' and 'main decoder'.
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


def main_table(options: argparse.Namespace) -> Figures:
    """Compares all implementations at one size."""
    case = main_case(options)
    branch = Branch(case, options)
    names = implementations(options)
    if not options.no_compile:
        names[1:1] = ['bank torch.compile', 'bank eager']
    steps = {name: branch.make(name) for name in names}
    figures = measure(steps, options)
    if options.device == 'cuda':
        for name, step in steps.items():
            figures[name] |= count_kernels(step)
    bank, plain = figures['bank'], figures['plain']
    say_table(
        f'The auxiliary branch: {case}, {options.dtype}',
        [
            _cells('', name, row, bank, 'over bank')
            + [(key, str(row[key])) for key in ('kernels', 'copies') if key in row]
            for name, row in figures.items()
        ],
    )
    say(
        f'\nPlain over bank: {paired_ratio(plain["time"], bank["time"])}; memory plain over bank '
        f'{ratio(plain["memory"], bank["memory"])}.'
    )
    return figures


def perturbations_table(options: argparse.Namespace) -> Figures:
    """Compares one decoder of each kind, at the sizes of z of the paper's overhead table."""
    figures: Figures = {}
    rows = []
    shown = implementations(options)
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
            measured = measure({n: branch.make(n) for n in ([name] if alone else shown)}, options)
            times, memory = (
                {n: row[key] for n, row in measured.items()} for key in ('time', 'memory')
            )
            figures[f'{height}x{width} {name}'] = dict(time=times, memory=memory)
            cells = [('one decoder, z', f'{name}, {height}×{width}')]
            for n in shown:
                # an unperturbed decoder is a plain one
                row = measured.get(name if alone and n == 'plain' else n)
                cells += [
                    (n, seconds(row and row['time']['median'])),
                    ('memory', mebibytes(row and row['memory'])),
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


def scaling_table(options: argparse.Namespace) -> Figures:
    """Measures the bank as K, C, N, the stride or the share of positions change, one at a time."""
    base = main_case(options)
    series = [
        {f'K={k}': replace(base, decoders=paper_mix(k)) for k in options.scale_decoders},
        {f'C={c}': replace(base, classes=c) for c in options.scale_classes},
        {f'N={n}': replace(base, images=n) for n in options.scale_images},
        {f'stride {s}': replace(base, stride=s) for s in options.scale_strides},
        {f'position_fraction {f}': replace(base, position_fraction=f) for f in (1.0, 0.5, 0.25)},
    ]
    figures: Figures = {}
    rows = []
    for cases in series:
        if len(cases) < 2:  # nothing to compare
            continue
        say('  ' + ', '.join(cases))
        steps = {label: Branch(case, options).make('bank') for label, case in cases.items()}
        measured = measure(steps, options)
        first = next(iter(measured.values()))
        rows += [_cells('bank', *item, first, 'over the first') for item in measured.items()]
        figures |= measured
    say_table(f'How the bank grows: else {base}, {options.dtype}', rows)
    return figures


def _cells(title: str, name: str, row: Figures, base: Figures, over: str) -> list[Cell]:
    return [
        (title, name),
        *time_cells('forward + backward', row['time'], base['time'], over),
        ('memory of a step', mebibytes(row['memory'])),
        (over, ratio(row['memory'], base['memory'])),
        ('first call', seconds(row['time']['first'])),
    ]


TABLES = dict(main=main_table, perturbations=perturbations_table, scaling=scaling_table)


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__)
    parser.add_argument('--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument('--decoders', type=int, default=30, metavar='K')
    parser.add_argument('--classes', type=int, default=21, metavar='C')
    parser.add_argument('--images', type=int, default=2, metavar='N')
    parser.add_argument('--channels', type=int, default=512, metavar='D')
    parser.add_argument('--size', type=int, nargs=2, default=[40, 40], metavar=('h', 'w'))
    parser.add_argument('--stride', type=int, default=8)
    parser.add_argument('--position-fraction', type=float, default=1.0, metavar='F')
    for name, metavar, parse, default in (
        ('--map-sizes', 'hxw', _pair, ['96x96', '256x128']),  # of z, table by perturbation
        ('--scale-decoders', 'K', int, [30, 60, 120]),
        ('--scale-classes', 'C', int, [21, 60, 150]),
        ('--scale-images', 'N', int, [1, 2, 4]),
        ('--scale-strides', 's', int, [4, 8, 16]),
    ):
        parser.add_argument(
            name, type=parse, nargs='+', default=list(map(parse, default)), metavar=metavar
        )
    return parser.parse_args()


def _pair(text: str) -> tuple[int, int]:
    first, second = text.lower().split('x')
    return int(first), int(second)


def main() -> None:
    """Measures, prints the tables, writes the figures."""
    options = parse_args()
    results = begin(options)
    for name, table in TABLES.items():
        if name not in options.tables:
            continue
        say(f'\nmeasuring: {name}')
        results[name] = table(options)
        save(options, results)


if __name__ == '__main__':
    main()
