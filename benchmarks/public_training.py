#!/usr/bin/env python
"""Whole trainings of this project and of public code, taking turns on one machine.

Each run is a process with one thread and no loader processes. One runs at a time, for some seconds,
while the others are stopped. Times are CPU time. A run that has figures in OUT is not repeated.

CCT is a clone of github.com/yassouali/CCT (65d4e5b), UniMatch one of github.com/LiheYoung/UniMatch
(0324f3d). No file of a clone is changed; `_public_loops.py` lists what is patched in memory.

Examples:
    python benchmarks/public_training.py OUT --data data/idd_lite --weights mobilenet_v2.pth \\
        --cct ../CCT --unimatch ../UniMatch
    python benchmarks/public_training.py OUT ... --stop 60    # only speed and memory
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _measure import (
    PROJECT,
    begin,
    benchmark_parser,
    mebibytes,
    ratio,
    save,
    say,
    say_table,
    seconds,
)
from _public_loops import Notes, train_cct, train_ours, train_unimatch

RUNS: dict[str, tuple[Callable[..., None], str]] = {
    'supervised': (train_ours, 'supervised'),
    'cct': (train_ours, 'cct'),
    'cct-strong': (train_ours, 'cct-strong'),
    'unimatch': (train_ours, 'unimatch'),
    'unimatch-public': (train_ours, 'unimatch-public'),
    'public-cct-supervised': (train_cct, 'supervised'),
    'public-cct': (train_cct, 'semi'),
    'public-unimatch-supervised': (train_unimatch, 'supervised'),
    'public-unimatch': (train_unimatch, 'unimatch'),
}
BLOCK = 20  # steps, as many as between two lines of our log
CONFIG = PROJECT / 'configs/cct/cct_mbv2-jpu_idd-lite_20.py'
FIGURES, PARTIAL = 'figures.json', 'partial.json'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__, steps=False)
    parser.add_argument('out', type=_absolute, help='folder that the runs write to')
    parser.add_argument('--data', type=_absolute, required=True, help='folder of IDD Lite')
    parser.add_argument(
        '--weights', type=_absolute, required=True, help="file of the backbone's weights"
    )
    parser.add_argument('--cct', type=_absolute, metavar='DIR', help='clone of CCT')
    parser.add_argument('--unimatch', type=_absolute, metavar='DIR', help='clone of UniMatch')
    parser.add_argument('--config', type=_absolute, default=str(CONFIG), help='IDD Lite setting')
    parser.add_argument('--runs', nargs='+', choices=RUNS, default=list(RUNS))
    parser.add_argument(
        '--iterations', type=int, default=1200, help='rounded to epochs of the unlabelled images'
    )
    parser.add_argument(
        '--repeat-labels',
        action='store_true',
        help="repeat CCT's labelled list to fill an epoch; otherwise CCT replays its first pass",
    )
    parser.add_argument('--stop', type=int, metavar='N', help='end each run after N iterations')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--turn', type=float, default=20.0, metavar='S', help='seconds per turn')
    parser.add_argument('--child', choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for clone in ('cct', 'unimatch'):
        needed = [run for run in options.runs if run.startswith(f'public-{clone}')]
        if needed and getattr(options, clone) is None:
            parser.error(f'--runs {needed[0]}: expected --{clone} DIR, a clone')
    return options


def _absolute(path: str) -> str:
    return str(Path(path).resolve())


def by_turns(runs: list[str], options: argparse.Namespace) -> None:
    """Runs each training in its folder, some seconds at a time, until all have ended.

    Raises:
        SystemExit: A training failed.
    """
    running: dict[str, subprocess.Popen] = {}
    try:
        for name in runs:
            folder = Path(options.out, name)
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / 'log.txt').open('w', encoding='utf-8') as log:
                running[name] = subprocess.Popen(
                    [sys.executable, __file__, *sys.argv[1:], '--child', name],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=os.environ | dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES=''),
                )
            running[name].send_signal(signal.SIGSTOP)
        while running:
            for name, process in list(running.items()):
                process.send_signal(signal.SIGCONT)
                try:
                    process.wait(options.turn)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGSTOP)
                    continue
                del running[name]
                if process.returncode:
                    raise SystemExit(f'error: {name} failed; see {options.out}/{name}/log.txt')
                folder = Path(options.out, name)
                (folder / PARTIAL).rename(folder / FIGURES)
                say(f'{name} has ended')
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def summarise(figures: dict[str, Any]) -> dict[str, Any]:
    """Returns a run's CPU time per step (mean, quartiles over blocks) and its validations."""
    spent = np.diff(figures['steps'])
    for validation in figures['validations']:
        if validation['step'] <= len(spent):  # the time of the next step includes it
            spent[validation['step'] - 1] -= validation['end'] - validation['begin']
    blocks = [block.mean() for block in np.split(spent, range(BLOCK, len(spent), BLOCK))]
    validating = [found['end'] - found['begin'] for found in figures['validations']]
    return dict(
        step=float(spent.mean()),
        quartiles=np.quantile(blocks, (0.25, 0.75)).tolist(),
        steps=len(figures['steps']),
        validation=statistics.median(validating) if validating else None,
        validations=figures['validations'],
        cpu=figures['cpu'],
        peak=figures['peak'],
    )


def reaches(run: dict[str, Any], miou: float) -> tuple[int, float] | None:
    """Steps and CPU time until the first validation that reaches `miou`; None if none does."""
    for found in run['validations']:
        if found['miou'] >= miou:
            return found['step'], found['end']
    return None


def print_tables(results: dict[str, dict[str, Any]]) -> None:
    """Prints speed and memory and, for runs that validated, the accuracy."""
    base = results.get('supervised')
    say_table(
        'Speed and memory, CPU time',
        [
            [
                ('run', f'`{name}`'),
                ('a step', seconds(run['step'])),
                ('quartiles', '–'.join(map(seconds, run['quartiles']))),
                ('over supervised', ratio(run['step'], base['step'] if base else None)),
                ('iterations a second', f'{1 / run["step"]:.2f}'),
                ('peak memory', mebibytes(run['peak'])),
            ]
            for name, run in results.items()
        ],
    )
    validated = {name: run for name, run in results.items() if run['validations']}
    target = validated['supervised']['validations'][-1]['miou'] if 'supervised' in validated else 0
    rows = []
    for name, run in validated.items():
        found = reaches(run, target)
        cells = [
            ('run', f'`{name}`'),
            ('iterations', str(run['steps'])),
            ('mIoU by epoch', ' '.join(f'{noted["miou"]:.1f}' for noted in run['validations'])),
            ('CPU time', seconds(run['cpu'])),
            ('a validation', seconds(run['validation'])),
        ]
        if target:
            reached = f'{seconds(found[1])}, {found[0]} iterations' if found else '–'
            cells.append((f'to {target:.1f} mIoU', reached))
        rows.append(cells)
    if rows:
        say_table('Accuracy', rows)


def main() -> None:
    """Runs the trainings and prints the tables; a child process runs one of them."""
    options = parse_args()
    if options.child:
        folder = Path(options.out, options.child)
        os.chdir(folder)
        train, method = RUNS[options.child]
        notes = Notes(folder / PARTIAL, options.stop)
        train(options, notes, method)
        notes.write()
        return
    results = begin(options)
    out = Path(options.out)
    wanted = [name for name in options.runs if not (out / name / FIGURES).exists()]
    by_turns(wanted, options)
    found = {
        name: summarise(json.loads((out / name / FIGURES).read_text(encoding='utf-8')))
        for name in RUNS
        if (out / name / FIGURES).exists()
    }
    print_tables(found)
    save(options, {**results, 'runs': found})


if __name__ == '__main__':
    main()
