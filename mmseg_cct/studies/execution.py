"""Resumable execution of many trainings and their tests, as processes.

A run's folder holds its `config.py`, the work directories `train/` and `test/`, and the output of
both in `log.txt`. There is no other record: a run with metrics is finished, one with its last
checkpoint is trained, and any other resumes from its latest checkpoint.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import locked_folder
from mmseg_cct.utils.text import counted


@dataclass(frozen=True)
class StudyRun:
    """A training of `max_iters` iterations and its test, in a folder of the study `out`.

    `labels` is the number of labelled images, or 'config' for the config's own. The last checkpoint
    is tested, and `log` has the output of both.
    """

    out: Path
    method: str
    labels: str
    seed: int
    max_iters: int = 0

    @property
    def name(self) -> str:
        number = f'{self.labels} labels' if self.labels.isdigit() else "the config's labels"
        return f'{self.method}, {number}, seed {self.seed}'

    @property
    def folder(self) -> Path:
        return self.out / self.method / self.labels / f'seed{self.seed}'

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
        if self.metrics() is not None:
            return None
        # This file is written after the checkpoint, so it never names one that a kill cut short.
        latest = self.folder / 'train' / 'last_checkpoint'
        named = latest.read_text(errors='replace') if latest.is_file() else ''
        return 'test' if Path(named.strip()).name == self.checkpoint.name else 'train'

    def metrics(self) -> dict[str, float] | None:
        """Reads the metrics of the latest test by name; None before the first.

        The mIoU of several domains is their average.
        """
        # Folders are named by date and time. A test that was killed left a part of its file.
        for file in sorted(self.folder.glob('test/*/*.json'), reverse=True):
            with suppress(ValueError, TypeError, AttributeError):
                metrics = json.loads(file.read_bytes())
                average = {'mIoU': metrics['mIoU_avg']} if 'mIoU_avg' in metrics else {}
                return {key: float(value) for key, value in {**metrics, **average}.items()}
        return None

    def outcome(self) -> str:
        """Says in a line what came out of the run, or why it is unfinished."""
        metrics, step = self.metrics(), self.next_step()
        if metrics is not None:
            return f'{self.name}: mIoU {metrics["mIoU"]:.2f}' if 'mIoU' in metrics else self.name
        text = self.log.read_text(errors='replace') if self.log.is_file() else ''
        last = [line.strip() for line in text.splitlines() if line.strip()] or ['it is empty']
        return f'{self.name}: {step} FAILED, see {self.log}: {last[-1]}'


def find_runs(out: Path) -> list[StudyRun]:
    """Finds the runs of a study by their folders, in the order of methods, labels and seeds."""
    runs = []
    for folder in out.glob('*/*/seed*'):
        if seed := re.fullmatch(r'seed(\d+)', folder.name):
            method, labels = folder.parts[-3:-1]
            runs.append(StudyRun(out, method, labels, int(seed[1])))
    return sorted(runs, key=lambda run: (run.method, *label_order(run.labels), run.seed))


def label_order(labels: str) -> tuple[int, str]:
    """Sort key of labelled sets: 'config', then ascending numbers."""
    return (int(labels) if labels.isdigit() else -1, labels)


class Processes:
    """Processes of several threads, which all end when the main one is interrupted."""

    def __init__(self) -> None:
        self._active: set[subprocess.Popen] = set()
        self._stopped = False

    def run(self, command: Sequence[Path | str], log: Path, slot: Mapping[str, str]) -> None:
        """Runs a command to its end, with its output added to a log."""
        if self._stopped:
            return
        with log.open('a', encoding='utf-8') as output:
            # In a session of its own, a process ends together with its data loaders.
            process = subprocess.Popen(
                ending_with_this(command),
                stdin=subprocess.DEVNULL,  # a tool that asks would wait unseen
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **slot},
                start_new_session=True,
            )
            self._active.add(process)
            process.wait()
            self._active.discard(process)

    def end(self) -> None:
        """Ends all processes with their children; a training resumes from its last checkpoint."""
        self._stopped = True
        for process in list(self._active):
            end_session(process)


def end_session(process: subprocess.Popen) -> None:
    """Ends a process that began a session, with its children; on Windows, the process alone."""
    if not hasattr(os, 'killpg'):
        process.terminate()
        return
    with suppress(ProcessLookupError):  # it may have ended before its thread noticed
        os.killpg(process.pid, signal.SIGKILL)


def ending_with_this(command: Sequence[Any]) -> list[Any]:
    """Returns a command that Linux kills as soon as this process ends, even if it is killed."""
    if sys.platform != 'linux':
        return list(command)
    # as `end_with_parent` does, without the start of its imports
    start = 'import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); '
    start += 'os.execv(sys.argv[1], sys.argv[1:])'
    return [sys.executable, '-c', start, *command]


def execute(
    runs: Sequence[StudyRun], tools: Path, slots: Sequence[Mapping[str, str]], processes: int = 1
) -> list[str]:
    """Trains and tests unfinished runs in the given order, one at a time on each slot.

    `tools` is the folder of `train.py` and `test.py`. A slot is a set of environment variables such
    as CUDA_VISIBLE_DEVICES, and each run uses `processes` processes. A failed run is reported with
    its log and does not stop the others. No process outlives the call, whether it returns, fails or
    is interrupted by Ctrl-C. Returns a line with the reason for each run that is still unfinished.
    """
    waiting = unfinished(runs)
    started, failures = Processes(), []
    free: SimpleQueue[Mapping[str, str]] = SimpleQueue()
    for slot in slots:
        free.put(slot)

    def work(run: StudyRun) -> str:
        slot = free.get()  # there is one: the pool has as many threads as slots
        try:
            return finish(run, tools, processes, slot, started)
        finally:
            free.put(slot)

    # `kill` and a closed terminal are then as Ctrl-C, and the children do not outlive them
    signals = [getattr(signal, name) for name in ('SIGTERM', 'SIGHUP') if hasattr(signal, name)]
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in signals}
    with ThreadPoolExecutor(len(slots)) as pool:
        try:
            futures = {pool.submit(work, run): run for run in waiting}
            for done, future in enumerate(as_completed(futures), 1):
                if futures[future].next_step() is not None:
                    failures.append(future.result())
                print(f'[{done}/{len(waiting)}] {future.result()}', flush=True)
        finally:
            # leaving the pool waits for its threads, and those wait for the processes
            pool.shutdown(wait=False, cancel_futures=True)
            started.end()
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return failures


def unfinished(runs: Sequence[StudyRun]) -> list[StudyRun]:
    """Returns the runs that have no result yet, and prints how many have one."""
    waiting = [run for run in runs if run.next_step() is not None]
    if len(waiting) < len(runs):
        number = counted(len(runs), 'run')
        print(f'{len(runs) - len(waiting)} of {number} finished, skipped', flush=True)
    return waiting


def finish(
    run: StudyRun,
    tools: Path,
    processes: int = 1,
    slot: Mapping[str, str] | None = None,
    started: Processes | None = None,
) -> str:
    """Trains and tests a run as far as it is not done yet; returns its outcome in a line."""
    started, slot, to = started or Processes(), slot or {}, '--work-dir'
    resume = ['--resume'] * run.checkpoint.parent.is_dir()
    commands: dict[str, list[Path | str]] = {
        'train': [tools / 'train.py', run.config, to, run.folder / 'train', *resume],
        'test': [tools / 'test.py', run.config, run.checkpoint, to, run.folder / 'test'],
    }
    on_devices = ''.join(f' on {key}={value}' for key, value in slot.items())
    if processes > 1:
        python = [sys.executable, '-m', 'torch.distributed.run', '--standalone']
        python, launcher = [*python, f'--nproc-per-node={processes}'], ['--launcher', 'pytorch']
    else:
        python, launcher = [sys.executable], []
    try:
        with locked_folder(run.folder, 'another study'):
            for step, command in commands.items():
                if run.next_step() == step:  # else done by an earlier or another study
                    print(f'{run.name}: {step}{on_devices}, log in {run.log}', flush=True)
                    started.run([*python, *command, *launcher], run.log, slot)
                    if run.next_step() == step:
                        break
    except UserError as error:
        return f'{run.name}: left alone, {error}'
    return run.outcome()
