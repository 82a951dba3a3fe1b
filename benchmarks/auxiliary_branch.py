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
from typing import Any

import torch
import torch.nn.functional as F
from _measure import (
    PROJECT,
    Figures,
    Step,
    autocast,
    begin,
    benchmark_parser,
    measure,
    save,
    say_figures,
)
from _public_code import load_public_code
from mmengine.config import Config
from plain import PlainBank, consistency_mse
from torch import Tensor, nn

from mmseg_cct.models import PerturbedDecoderBank

SETTING = Config.fromfile(PROJECT / 'configs/_base_/models/cct.py').model.auxiliary_head
# How the bank grows.
GROWTH: dict[str, tuple[float, ...]] = dict(
    decoders=(30, 60, 120),
    classes=(21, 60, 150),
    images=(1, 2, 4),
    stride=(4, 8, 16),
    position_fraction=(1.0, 0.5, 0.25),
)


@dataclass(frozen=True)
class Case:
    """One size of the problem."""

    decoders: int  # K, in the paper's mix
    images: int  # N
    channels: int  # D
    height: int  # h, of z
    width: int  # w, of z
    classes: int  # C
    stride: int  # s
    position_fraction: float = 1.0  # share of the feature positions that the losses use

    def __str__(self) -> str:
        return (
            f'K={self.decoders}, C={self.classes}, stride {self.stride}, z '
            f'{self.images}×{self.channels}×{self.height}×{self.width}'
        )


def paper_mix(num_decoders: int) -> dict[str, int]:
    """The paper's mix of 30 decoders, for a multiple of 15."""
    return {n: p.num_decoders * num_decoders // 30 for n, p in SETTING.perturbations.items()}


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

        They are 'bank', 'bank torch.compile', 'bank eager', 'plain' and 'public'.
        """
        if name.startswith('bank'):
            ways: dict[str, bool | str] = {'bank': 'auto', 'bank torch.compile': True}
            bank = self._bank(compile=not self.options.no_compile and ways.get(name, False))
            return self._step(bank, lambda: bank.loss((self.z,), self.seg_logits, [])['loss'])
        weight = SETTING.loss_consistency.loss_weight
        probabilities = self.seg_logits.softmax(1)
        if name == 'plain':
            plain = PlainBank(self._bank(compile=False)).to(self.options.device)

            def plain_loss() -> Tensor:
                predictions = plain.predict(self.z, self.seg_logits, [0])
                return weight * consistency_mse([p.float() for p in predictions], probabilities)

            return self._step(plain, plain_loss)
        public, case = load_public_code(self.options.reference), self.case
        decoders = public.auxiliary_decoders(
            paper_mix(case.decoders), case.channels, case.classes, case.stride
        ).to(self.options.device)

        def public_loss() -> Tensor:
            predictions = [decoder(self.z, self.seg_logits) for decoder in decoders]
            return weight * public.consistency(predictions, probabilities)

        return self._step(decoders, public_loss)

    def _bank(self, compile: bool | str) -> PerturbedDecoderBank:
        torch.manual_seed(0)
        perturbations = {}
        for name, count in paper_mix(self.case.decoders).items():
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

    def _step(self, module: nn.Module, loss: Step) -> Step:
        def step() -> float:
            self.z.grad = None
            module.zero_grad(set_to_none=True)
            with autocast(self.options):
                value: Any = loss()
            value.backward()
            return value.detach()

        return step


def main_table(case: Case, options: argparse.Namespace) -> Figures:
    """Compares all implementations at one size."""
    branch = Branch(case, options)
    names = ['bank', 'plain'] + ['public'] * bool(options.reference)
    if not options.no_compile:
        names[1:1] = ['bank torch.compile', 'bank eager']
    figures = measure({name: branch.make(name) for name in names}, options)
    heading = f'The auxiliary branch: {case}, {options.dtype}'
    say_figures(heading, figures, {'over bank': lambda _: 'bank'})
    return figures


def scaling_table(base: Case, options: argparse.Namespace) -> Figures:
    """Measures the bank as one property of the case changes at a time."""
    figures: Figures = {}
    for key, values in GROWTH.items():
        cases = {f'{key} {value}': replace(base, **{key: value}) for value in values}
        steps = {label: Branch(case, options).make('bank') for label, case in cases.items()}
        figures |= measure(steps, options)
    first = {key: f'{key} {values[0]}' for key, values in GROWTH.items()}
    heading = f'How the bank grows: else {base}, {options.dtype}'
    say_figures(heading, figures, {'over the first': lambda label: first[label.split()[0]]})
    return figures


TABLES = dict(main=main_table, scaling=scaling_table)


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__)
    parser.add_argument('--reference', metavar='DIR', help="your clone of the authors' public code")
    parser.add_argument('--tables', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument('--decoders', type=int, default=30, metavar='K', help='a multiple of 15')
    parser.add_argument('--classes', type=int, default=21, metavar='C')
    parser.add_argument('--images', type=int, default=2, metavar='N')
    parser.add_argument('--channels', type=int, default=512, metavar='D')
    parser.add_argument('--size', type=int, nargs=2, default=[40, 40], metavar=('h', 'w'))
    parser.add_argument('--stride', type=int, default=8)
    return parser.parse_args()


def main() -> None:
    """Measures, prints the tables, writes the figures."""
    options = parse_args()
    results = begin(options)
    sizes = options.channels, *options.size, options.classes, options.stride
    case = Case(options.decoders, options.images, *sizes)
    for name in options.tables:
        results[name] = TABLES[name](case, options)
        save(options, results)


if __name__ == '__main__':
    main()
