"""Resumable execution of many trainings and their tests, as processes.

A run's folder holds its `config.py`, the work directories `train/` and `test/`, and the output of
both in `log.txt`. There is no other record: a run with metrics is finished, one with its last
checkpoint is trained, and any other resumes from its latest checkpoint.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from mmseg_cct.config.load import read_config
from mmseg_cct.config.walk import changed_settings
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import end_session, locked_folder

_GRACE = 10.0  # seconds that processes get to end on SIGTERM
_POLLING = 0.1  # seconds between looks at the processes

# The processes of a run, one after the other, and its outcome in one line.
_Work = Generator[subprocess.Popen, None, str]


@dataclass(frozen=True)
class StudyRun:
    """A training of `max_iters` iterations and its test; `name` is for messages.

    All its files are in `folder`. Its last checkpoint is tested, and `log` has the output of both.
    """

    name: str
    folder: Path
    max_iters: int

    @property
    def config(self) -> Path:
        return self.folder / 'config.py'

    @property
    def checkpoint(self) -> Path:
        return self.folder / 'train' / f'iter_{self.max_iters}.pth'

    @property
    def log(self) -> Path:
        return self.folder / 'log.txt'

    def next_step(self) -> str | None:
        """Finds the next step, 'train' or 'test'; None for a finished run."""
        if read_metrics(self.folder) is not None:
            return None
        # This file is written after the checkpoint, so it never names one that a kill cut short.
        latest = self.folder / 'train' / 'last_checkpoint'
        named = latest.read_text(errors='replace') if latest.is_file() else ''
        return 'test' if Path(named.strip()).name == self.checkpoint.name else 'train'


def prepare_runs(planned: Sequence[tuple[str, Path, Config]]) -> list[StudyRun]:
    """Writes the configs of runs (name, folder, config), or checks them against those that exist.

    All are checked before the first is written: configs left by a rejected study would differ from
    those of the corrected one.
    """
    runs = {StudyRun(name, to, config.train_cfg.max_iters): config for name, to, config in planned}
    new = [run for run in runs if not run.config.is_file()]
    for run, config in runs.items():
        if run in new:
            continue
        if changed := changed_settings(read_config(run.config).to_dict(), config.to_dict()):
            key, there, here = changed[0]
            raise UserError(
                run.config,
                f'differs from the config of this study, {key} is {there!r} there and {here!r} '
                'here',
                'the same: delete the folder, or name another one for this study',
            )
    for run in new:
        run.folder.mkdir(parents=True, exist_ok=True)
        unfinished = run.config.with_suffix('.tmp.py')
        runs[run].dump(unfinished)
        unfinished.replace(run.config)
    return list(runs)


def read_metrics(folder: Path) -> dict[str, float] | None:
    """Reads the metrics of a run's latest test from its folder, by name; None before the first.

    The mIoU of several domains is their average.
    """
    # Folders are named by date and time. A test that was killed left a part of its file.
    for file in sorted(folder.glob('test/*/*.json'), reverse=True):
        with suppress(ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            metrics = json.loads(file.read_bytes())
            average = {'mIoU': metrics['mIoU_avg']} if 'mIoU_avg' in metrics else {}
            return {key: float(value) for key, value in {**metrics, **average}.items()}
    return None


def execute(
    runs: Sequence[StudyRun], tools: Path, slots: Sequence[Mapping[str, str]], processes: int = 1
) -> list[str]:
    """Trains and tests unfinished runs in the given order, one at a time on each slot.

    `tools` is the folder of `train.py` and `test.py`. A slot is a set of environment variables such
    as CUDA_VISIBLE_DEVICES, and each run uses `processes` processes. A failed run is reported with
    its log and does not stop the others. No process outlives the call, whether it returns, fails or
    is interrupted by Ctrl-C. Returns a line with the reason for each run that is still unfinished.
    """
    waiting = [run for run in runs if run.next_step() is not None]
    if len(waiting) < len(runs):
        print(f'{len(runs) - len(waiting)} of {len(runs)} runs are finished, skipped', flush=True)
    number, free, failures = len(waiting), list(slots), []
    active: list[_Active] = []
    with _termination_as_interrupt():
        try:
            while waiting or active:
                # Fill a free slot, then look which runs have got on.
                if waiting and free:
                    run, slot = waiting.pop(0), free.pop(0)
                    active.append(_Active(run, slot, _finish(run, tools, slot, processes)))
                for each in list(active):
                    if each.goes_on():
                        continue
                    active.remove(each)
                    free.append(each.slot)
                    if each.run.next_step() is not None:
                        failures.append(each.outcome)
                    done = number - len(waiting) - len(active)
                    print(f'[{done}/{number}] {each.outcome}', flush=True)
                if not (waiting and free):
                    time.sleep(_POLLING)
        finally:
            _end([each.process for each in active if each.process is not None])
            for each in active:
                each.work.close()  # lets go of its locks
    return failures


@dataclass
class _Active:
    """A run on a slot: `work` yields one process after the other, which is waited for."""

    run: StudyRun
    slot: Mapping[str, str]
    work: _Work
    process: subprocess.Popen | None = None
    outcome: str = ''

    def goes_on(self) -> bool:
        """Starts the next process if the last one has ended; False if none is left."""
        if self.process is not None and self.process.poll() is None:
            return True
        try:
            self.process = next(self.work)
        except StopIteration as end:
            self.outcome = end.value
            return False
        return True


def _finish(run: StudyRun, tools: Path, slot: Mapping[str, str], processes: int) -> _Work:
    """Trains and tests a run: yields each process to wait for, and returns the outcome."""
    with ExitStack() as held:
        try:
            # A killed study's training may go on.
            if run.checkpoint.parent.is_dir():
                with locked_folder(run.checkpoint.parent, 'a training'):
                    pass
            held.enter_context(locked_folder(run.folder, 'another study'))
        except UserError as error:
            return f'{run.name}: left alone, {error}'
        log = held.enter_context(run.log.open('a', encoding='utf-8'))
        to = '--work-dir'
        commands: dict[str, list[Path | str]] = {
            'train': [tools / 'train.py', run.config, to, run.folder / 'train', '--resume'],
            'test': [tools / 'test.py', run.config, run.checkpoint, to, run.folder / 'test'],
        }
        where = ' '.join(f'{key}={value}' for key, value in slot.items())
        for step, command in commands.items():
            if run.next_step() != step:  # done by an earlier or another study
                continue
            print(f'{run.name}: {step}{where and f" on {where}"}, log in {run.log}', flush=True)
            # In a session of its own, a process ends together with its data loaders.
            process = subprocess.Popen(
                launched(command, processes),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **slot},
                start_new_session=True,
            )
            yield process
            if process.returncode or run.next_step() == step:
                code = process.returncode
                reason = f'exit code {code}' if code else 'ended without its result'
                return f'{run.name}: {step} FAILED ({reason}), see {run.log}: {_last_line(run.log)}'
    metrics = read_metrics(run.folder) or {}
    return f'{run.name}: mIoU {metrics["mIoU"]:.2f}' if 'mIoU' in metrics else run.name


def _end(processes: Sequence[subprocess.Popen]) -> None:
    """Ends processes with their children, at once those that take longer than the grace."""
    for process in processes:
        end_session(process)
    last = time.monotonic() + _GRACE
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(last - time.monotonic(), 0))
    for process in processes:
        end_session(process, at_once=True)
        process.wait()


def launched(command: Sequence[Path | str], processes: int) -> list[Path | str]:
    """Completes a tool's command line; for several processes, the tool must take a launcher."""
    if processes == 1:
        return [sys.executable, *command]
    torchrun = ['-m', 'torch.distributed.run', '--standalone', f'--nproc-per-node={processes}']
    return [sys.executable, *torchrun, *command, '--launcher', 'pytorch']


def _last_line(file: Path) -> str:
    lines = [line for line in file.read_text(errors='replace').splitlines() if line.strip()]
    return lines[-1].strip() if lines else 'it is empty'


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Treats SIGTERM as Ctrl-C, so that `kill` ends the children too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
