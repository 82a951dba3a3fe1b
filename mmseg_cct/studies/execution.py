"""Resumable execution of many trainings and their tests, as processes.

A run's folder holds its `config.py`, the work directories `train/` and `test/`, and the output of
both in `log.txt`. There is no other record: a run with metrics is finished, one with its last
checkpoint is trained, and any other resumes from its latest checkpoint.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mmengine.config import Config

from mmseg_cct.config.load import read_config
from mmseg_cct.config.walk import changed_settings
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import end_session, locked_folder

_GRACE = 10.0  # seconds that processes get to end on SIGTERM


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
    # folders are named by date and time
    for file in sorted(folder.glob('test/*/*.json'), reverse=True):
        with suppress(ValueError, TypeError, AttributeError, RecursionError):  # cut by a kill
            metrics = json.loads(file.read_bytes())
            average = {'mIoU': metrics['mIoU_avg']} if 'mIoU_avg' in metrics else {}
            return {key: float(value) for key, value in {**metrics, **average}.items()}
    return None


def execute(
    runs: Sequence[StudyRun],
    tools: Path,
    slots: Sequence[Mapping[str, str]],
    processes: int = 1,
) -> list[str]:
    """Trains and tests unfinished runs in the given order, one at a time on each slot.

    `tools` is the folder of `train.py` and `test.py`. A slot is a set of environment variables such
    as CUDA_VISIBLE_DEVICES, and each run uses `processes` processes. A failed run is reported with
    its log and does not stop the others. No process outlives the call, whether it returns, fails or
    is interrupted by Ctrl-C. Returns a line with the reason for each run that is still unfinished.
    """
    waiting = [run for run in runs if run.next_step() is not None]
    if len(waiting) < len(runs):
        _say(f'{len(runs) - len(waiting)} of {len(runs)} runs are finished, skipped')
    free: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)
    running, failures = _Processes(), []
    futures: dict[Future[str], StudyRun] = {}
    pool = ThreadPoolExecutor(len(slots))
    with _termination_as_interrupt():
        try:
            futures = {
                pool.submit(_finish, run, tools, free, running, processes): run for run in waiting
            }
            for done, future in enumerate(as_completed(futures), 1):
                if futures[future].next_step() is not None:
                    failures.append(future.result())
                _say(f'[{done}/{len(waiting)}] {future.result()}')
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            running.end()
            wait([future for future in futures if not future.cancelled()], _GRACE)
            running.end(at_once=True)
            pool.shutdown()
    return failures


def _finish(
    run: StudyRun,
    tools: Path,
    free: 'queue.SimpleQueue[Mapping[str, str]]',
    running: '_Processes',
    processes: int,
) -> str:
    """Trains and tests a run on a free slot; returns its outcome in one line."""
    slot = free.get()
    try:
        with ExitStack() as held:
            try:
                # a killed study's training may go on
                if run.checkpoint.parent.is_dir():
                    with locked_folder(run.checkpoint.parent, 'a training'):
                        pass
                held.enter_context(locked_folder(run.folder, 'another study'))
            except UserError as error:
                return f'{run.name}: left alone, {error}'
            log = held.enter_context(run.log.open('a', encoding='utf-8'))
            return _train_and_test(run, tools, slot, log, running, processes)
    finally:
        free.put(slot)


def _train_and_test(
    run: StudyRun,
    tools: Path,
    slot: Mapping[str, str],
    log: IO[str],
    running: '_Processes',
    processes: int,
) -> str:
    commands: dict[str, list[Path | str]] = {
        'train': [tools / 'train.py', run.config, '--work-dir', run.folder / 'train', '--resume'],
        'test': [tools / 'test.py', run.config, run.checkpoint, '--work-dir', run.folder / 'test'],
    }
    where = ' '.join(f'{key}={value}' for key, value in slot.items())
    for step, command in commands.items():
        if run.next_step() != step:  # done by an earlier or another study
            continue
        _say(f'{run.name}: {step}{where and f" on {where}"}, log in {run.log}')
        code = running.run(launched(command, processes), log, slot)
        if code or run.next_step() == step:
            reason = f'exit code {code}' if code else 'ended without its result'
            return f'{run.name}: {step} FAILED ({reason}), see {run.log}: {_last_line(run.log)}'
    metrics = read_metrics(run.folder) or {}
    return f'{run.name}: mIoU {metrics["mIoU"]:.2f}' if 'mIoU' in metrics else run.name


def launched(command: Sequence[Path | str], processes: int) -> list[Path | str]:
    """Completes a tool's command line; for several processes, the tool must take a launcher."""
    if processes == 1:
        return [sys.executable, *command]
    torchrun = ['-m', 'torch.distributed.run', '--standalone', f'--nproc-per-node={processes}']
    return [sys.executable, *torchrun, *command, '--launcher', 'pytorch']


class _Processes:
    """Processes that several threads start and one ends."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._ended = False

    def run(self, command: Sequence[Path | str], log: IO[str], variables: Mapping[str, str]) -> int:
        """Runs a command and returns its exit code."""
        with self._lock:
            if self._ended:
                raise CancelledError
            # In a session of its own, a process ends together with its data loaders.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,
            )
            self._running.add(process)
        code = process.wait()
        with self._lock:
            self._running.remove(process)
        return code

    def end(self, at_once: bool = False) -> None:
        """Ends every process with its children, and refuses new ones."""
        with self._lock:
            self._ended = True
            for process in self._running:
                end_session(process, at_once)


def _say(line: str) -> None:
    print(f'{line}\n', end='', flush=True)  # one write: threads do not mix lines


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
