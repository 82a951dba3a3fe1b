"""Trains and tests many configs as separate processes; what is on disk says how far each is.

A run's folder holds `config.py`, what it trains; `train/`, the training's work directory with its
checkpoints; `test/`, the test's, with the metrics; and `log.txt`, the output of both. There is no
other record: a run is finished if its metrics are there, trained if its last checkpoint is, and
goes on from its latest checkpoint otherwise.
"""

import fcntl
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mmengine.config import Config

from mmseg_cct.errors import UserError

_GRACE = 10.0  # seconds that processes have to end when told to


@dataclass(frozen=True)
class StudyRun:
    """A training and its test.

    Attributes:
        name: What messages call it.
        folder: Its folder.
        max_iters: Iterations of the training.
    """

    name: str
    folder: Path
    max_iters: int

    @property
    def config(self) -> Path:
        """The config that it trains."""
        return self.folder / 'config.py'

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that is tested, the training's last."""
        return self.folder / 'train' / f'iter_{self.max_iters}.pth'

    @property
    def log(self) -> Path:
        """What both processes print."""
        return self.folder / 'log.txt'

    def next_step(self) -> str | None:
        """Looks at the folder.

        Returns:
            'train', 'test', or None where the run is finished.
        """
        if read_metrics(self.folder) is not None:
            return None
        # written after the checkpoint: a file that a kill has cut short is not named there
        latest = self.folder / 'train' / 'last_checkpoint'
        trained = latest.is_file() and Path(latest.read_text().strip()).name == self.checkpoint.name
        return 'test' if trained else 'train'


def prepare_run(name: str, folder: Path, config: Config) -> StudyRun:
    """Writes a run's config, or checks that the one in its folder is the same.

    Args:
        name: What messages call the run.
        folder: Its folder.
        config: What it trains.

    Returns:
        The run.

    Raises:
        UserError: If the folder holds a run of another config.
    """
    run = StudyRun(name, folder, config.train_cfg.max_iters)
    if run.config.is_file():
        if Config.fromfile(run.config).to_dict() != config.to_dict():
            raise UserError(
                f'{run.config}: differs from the config of this study; expected the '
                'same: delete the folder, or name another one for this study'
            )
        return run
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = run.config.with_suffix('.tmp.py')
    config.dump(unfinished)
    unfinished.replace(run.config)
    return run


def read_metrics(folder: Path) -> dict[str, float] | None:
    """Reads what a run achieves on its test set.

    Args:
        folder: The run's.

    Returns:
        The metrics by name, those of the latest test; None where there is none yet.
    """
    for file in sorted(folder.glob('test/*/*.json'), reverse=True):  # folders are named by time
        try:
            return {key: float(value) for key, value in json.loads(file.read_text()).items()}
        except json.JSONDecodeError:  # cut short by a kill
            continue
    return None


def execute(runs: Sequence[StudyRun], tools: Path, slots: Sequence[Mapping[str, str]]) -> list[str]:
    """Trains and tests what is left, one run at a time on each slot, in the order given.

    A run that fails is reported with its log and does not stop the others. However this ends, by
    Ctrl-C too, no process is left behind.

    Args:
        runs: The runs.
        tools: Folder with `train.py` and `test.py`.
        slots: Environment variables of each place a run can be on, as CUDA_VISIBLE_DEVICES.

    Returns:
        Of each run that is not finished, a line that says why.
    """
    waiting = [run for run in runs if run.next_step() is not None]
    if len(waiting) < len(runs):
        _say(f'{len(runs) - len(waiting)} of {len(runs)} runs are finished, skipped')
    free: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)
    processes, failures = _Processes(), []
    futures: dict[Future[str], StudyRun] = {}
    pool = ThreadPoolExecutor(len(slots))
    with _termination_as_interrupt():
        try:
            futures = {pool.submit(_finish, run, tools, free, processes): run for run in waiting}
            for done, future in enumerate(as_completed(futures), 1):
                if futures[future].next_step() is not None:
                    failures.append(future.result())
                _say(f'[{done}/{len(waiting)}] {future.result()}')
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end(signal.SIGTERM)
            wait([future for future in futures if not future.cancelled()], _GRACE)
            processes.end(signal.SIGKILL)
            pool.shutdown()
    return failures


def _finish(
    run: StudyRun,
    tools: Path,
    free: 'queue.SimpleQueue[Mapping[str, str]]',
    processes: '_Processes',
) -> str:
    """Does what is left of a run, on a free slot; gives a line that says how it went."""
    slot = free.get()
    try:
        with run.log.open('a', encoding='utf-8') as log:
            # The processes inherit the file and with it the lock: it holds as long as one of them
            # lives, be it an orphan of a killed study.
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return f'{run.name}: left alone, another process is at work in {run.folder}'
            return _train_and_test(run, tools, slot, log, processes)
    finally:
        free.put(slot)


def _train_and_test(
    run: StudyRun, tools: Path, slot: Mapping[str, str], log: IO[str], processes: '_Processes'
) -> str:
    commands: dict[str, list[Path | str]] = {
        'train': [tools / 'train.py', run.config, '--work-dir', run.folder / 'train', '--resume'],
        'test': [tools / 'test.py', run.config, run.checkpoint, '--work-dir', run.folder / 'test'],
    }
    where = ' '.join(f'{key}={value}' for key, value in slot.items())
    for step, command in commands.items():
        if run.next_step() != step:  # as far as an earlier study got
            continue
        _say(f'{run.name}: {step}{where and f" on {where}"}, log in {run.log}')
        code = processes.run([sys.executable, *command], log, slot)
        if code or run.next_step() == step:
            reason = f'exit code {code}' if code else 'ended without its result'
            return f'{run.name}: {step} FAILED ({reason}), see {run.log}: {_last_line(run.log)}'
    metrics = read_metrics(run.folder) or {}
    return f'{run.name}: mIoU {metrics["mIoU"]:.2f}' if 'mIoU' in metrics else run.name


class _Processes:
    """Processes of several threads, to be ended together."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._ended = False

    def run(self, command: Sequence[Path | str], log: IO[str], variables: Mapping[str, str]) -> int:
        """Runs a command to its end; gives the exit code."""
        with self._lock:
            if self._ended:
                raise CancelledError
            # a session of its own, so that its data loaders end with it
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

    def end(self, sent: signal.Signals) -> None:
        """Sends a signal to each process and all that it has started; none starts any more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                with suppress(ProcessLookupError):  # gone, its thread is about to notice
                    os.killpg(process.pid, sent)


def _say(line: str) -> None:
    print(f'{line}\n', end='', flush=True)  # in one write: several threads have their say


def _last_line(file: Path) -> str:
    lines = [line for line in file.read_text(errors='replace').splitlines() if line.strip()]
    return lines[-1].strip() if lines else 'it is empty'


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Lets a `kill` of this process end its children as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
