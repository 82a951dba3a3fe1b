"""Trains and tests many configs as separate processes; what is on disk says how far each is.

A run's folder holds `config.py`, what it trains; `train/`, the training's work directory with its
checkpoints; `test/`, the test's, with the metrics; and `log.txt`, the output of both. There is no
other record: a run is finished if its metrics are there, trained if its last checkpoint is, and
goes on from its latest checkpoint otherwise.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from mmseg_cct.errors import UserError

# Seconds between two looks at the running processes, and those they have to end when told to.
_INTERVAL = 0.2
_GRACE = 10.0


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
    """Does what is left of each run: one at a time on each slot, in the order given.

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
        print(f'{len(runs) - len(waiting)} of {len(runs)} runs are finished, skipped', flush=True)
    free = list(slots)
    active: list[_Process] = []
    failures: list[str] = []
    done, total = 0, len(waiting)
    with _termination_as_interrupt():
        try:
            while waiting or active:
                while waiting and free:
                    try:
                        active.append(_Process(waiting.pop(0), tools, free.pop(0)))
                    except _Busy as busy:
                        free.insert(0, busy.slot)
                        failures.append(str(busy))
                        done += 1
                        print(f'[{done}/{total}] {busy}', flush=True)
                for process in [process for process in active if process.ended()]:
                    outcome = process.go_on()
                    if outcome is None:
                        continue
                    active.remove(process)
                    free.append(process.slot)
                    done += 1
                    if process.run.next_step() is not None:
                        failures.append(outcome)
                    print(f'[{done}/{total}] {outcome}', flush=True)
                time.sleep(_INTERVAL)
        finally:
            _end(active)
    return failures


class _Busy(Exception):
    """Another process is at work in the run's folder."""

    def __init__(self, run: StudyRun, slot: Mapping[str, str]) -> None:
        super().__init__(f'{run.name}: left alone, another process is at work in {run.folder}')
        self.slot = slot


class _Process:
    """A run at work: its training, then its test."""

    def __init__(self, run: StudyRun, tools: Path, slot: Mapping[str, str]) -> None:
        self.run, self.tools, self.slot = run, tools, slot
        # The processes inherit the file and with it the lock: it holds as long as one of them
        # lives, be it an orphan of a killed study.
        self.log = run.log.open('a', encoding='utf-8')
        try:
            fcntl.flock(self.log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.log.close()
            raise _Busy(run, slot) from None
        self._start()

    def _start(self) -> None:
        run = self.run
        self.step = run.next_step()
        if self.step == 'train':
            command: list[Path | str] = [
                self.tools / 'train.py',
                run.config,
                '--work-dir',
                run.folder / 'train',
                '--resume',
            ]
        else:
            command = [
                self.tools / 'test.py',
                run.config,
                run.checkpoint,
                '--work-dir',
                run.folder / 'test',
            ]
        where = ' '.join(f'{key}={value}' for key, value in self.slot.items())
        print(f'{run.name}: {self.step}{where and f" on {where}"}, log in {run.log}', flush=True)
        # a session of its own, so that its data loaders end with it
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.slot},
            start_new_session=True,
        )

    def ended(self) -> bool:
        return self.process.poll() is not None

    def go_on(self) -> str | None:
        """Starts the test after the training; at the end gives a line that says how it went."""
        run, code = self.run, self.process.returncode
        step = run.next_step()
        if code == 0 and step == 'test' and self.step == 'train':
            self._start()
            return None
        self.log.close()
        if code == 0 and step is None:
            metrics = read_metrics(run.folder) or {}
            return f'{run.name}: mIoU {metrics["mIoU"]:.2f}' if 'mIoU' in metrics else run.name
        reason = f'exit code {code}' if code else 'ended without its result'
        return f'{run.name}: {self.step} FAILED ({reason}), see {run.log}: {_last_line(run.log)}'


def _last_line(file: Path) -> str:
    lines = [line for line in file.read_text(errors='replace').splitlines() if line.strip()]
    return lines[-1].strip() if lines else 'it is empty'


def _end(processes: Sequence[_Process]) -> None:
    """Ends processes and all that they have started."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if not process.ended():
                os.killpg(process.process.pid, sent)
        deadline = time.monotonic() + _GRACE
        while any(not process.ended() for process in processes) and time.monotonic() < deadline:
            time.sleep(_INTERVAL)
    for process in processes:
        process.log.close()


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Lets a `kill` of this process end its children as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
