#!/usr/bin/env python
"""Kills a training at random moments, resumes it, and compares it with an uninterrupted one.

The process gets SIGKILL, which it cannot catch. Every third kill waits for the moment at which a
checkpoint is being written. After each one every checkpoint file must be whole, and the last run
must log the losses of the uninterrupted one.

Example:
    python benchmarks/kill_and_resume.py configs/demo/cct_shapes.py --kills 10 \\
        --cfg-options train_cfg.max_iters=200 default_hooks.checkpoint.interval=10
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.engine.checkpoints import find_resumable, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.markdown import markdown_table

TOOL = Path(__file__).parents[1] / 'tools' / 'train.py'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', help='the config to train')
    parser.add_argument('--kills', type=int, default=10, help='how many (default: 10)')
    parser.add_argument('--seed', type=int, default=0, help='of the moments (default: 0)')
    parser.add_argument('--out', default='work_dirs/kills', help='folder of both trainings')
    parser.add_argument('--cfg-options', nargs='+', default=[], metavar='KEY=VALUE')
    return parser.parse_args()


def start(config: str, work_dir: Path, options: list[str]) -> subprocess.Popen:
    """Starts or resumes a training that logs every iteration."""
    work_dir.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        '-W',
        'ignore',
        str(TOOL),
        config,
        '--work-dir',
        str(work_dir),
        '--resume',
        '--cfg-options',
        'default_hooks.logger.interval=1',
        'log_processor.window_size=1',
        *options,
    ]
    with open(work_dir / 'log.txt', 'a') as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def logged(work_dir: Path) -> dict[int, list[dict]]:
    """The lines that all runs in a work directory logged, by iteration."""
    lines: dict[int, list[dict]] = {}
    for path in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for text in path.read_text().splitlines():
            line = json.loads(text) if text.endswith('}') else {}  # the last one may be torn
            if 'loss' in line:
                lines.setdefault(line['iter'], []).append(line)
    return lines


def kill_once(
    process: subprocess.Popen, work_dir: Path, until: int, at_write: bool, delay: float
) -> str | None:
    """Kills a run past an iteration, and says where; None if it ended before."""
    while process.poll() is None and max(logged(work_dir), default=0) < until:
        time.sleep(0.02)
    if at_write:
        while process.poll() is None and not list(work_dir.glob('.*.part')):
            pass
    else:
        time.sleep(delay)
    if process.poll() is not None:
        return None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return f'iteration {max(logged(work_dir), default=0)}{", in a write" * at_write}'


def main() -> None:
    """Runs the comparison and prints its table."""
    args = parse_args()
    rng, out = random.Random(args.seed), Path(args.out)
    with user_errors_as_one_line():
        for name in ('whole', 'killed'):
            if (out / name).exists():
                raise UserError(f'--out: {out / name} exists; expected a new folder')
        if start(args.config, out / 'whole', args.cfg_options).wait():
            raise UserError(
                f'{out / "whole" / "log.txt"}: the uninterrupted training failed; see there'
            )
        expected = logged(out / 'whole')

        work_dir, iterations = out / 'killed', max(expected)
        print(
            markdown_table(['kill', 'at', 'checkpoints, all whole', 'resumes from'], align='rlrl'),
            flush=True,
        )
        for kill in range(1, args.kills + 1):
            process = start(args.config, work_dir, args.cfg_options)
            low, high = (iterations * (kill - shift) // (args.kills + 1) for shift in (1, 0))
            where = kill_once(
                process, work_dir, rng.randint(low, high), kill % 3 == 0, rng.random()
            )
            if where is None:
                raise UserError(
                    f'{work_dir / "log.txt"}: the training ended before kill {kill}; see there'
                )
            files = list(work_dir.glob('iter_*.pth'))
            for file in files:
                read_checkpoint(str(file))
            found = find_resumable(str(work_dir))
            name = Path(found).name if found else 'the start'
            print(f'| {kill} | {where} | {len(files)} | {name} |', flush=True)
        if start(args.config, work_dir, args.cfg_options).wait():
            raise UserError(f'{work_dir / "log.txt"}: the last resumed training failed; see there')

    lines = logged(work_dir)
    assert lines.keys() == expected.keys()
    keys = [key for key in expected[1][0] if 'loss' in key or key in ('lr', 'aux.consistency')]
    worst = max(
        abs(line[key] - expected[t][0][key]) / max(abs(expected[t][0][key]), 1e-12)
        for t in lines
        for line in lines[t]
        for key in keys
    )
    names = [f'{name}/iter_{iterations}.pth' for name in ('whole', 'killed')]
    one, other = (read_checkpoint(str(out / name))['state_dict'] for name in names)
    apart = max((one[name].double() - other[name].double()).abs().max().item() for name in one)
    repeated = sum(map(len, lines.values())) - len(lines)
    print(f'\n{iterations} iterations, {repeated} of them run more than once. Largest relative')
    print(f'difference of {", ".join(keys)}: {worst:.1e}; of a weight at the end: {apart:.1e}.')


if __name__ == '__main__':
    main()
