"""A study on a Slurm cluster: each run is a job of an array, by submitit."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import counted

from .execution import StudyRun, finish, unfinished

_POLLING = 10.0  # seconds between looks at the queue


class Job:
    """Trains and tests a run on a node; requeued, it resumes from the last checkpoint."""

    def __call__(self, run: StudyRun, tools: Path, gpus: int) -> str:
        """Finishes the run with a process for each GPU; returns its outcome in a line."""
        return finish(run, tools, max(gpus, 1))

    def checkpoint(self, *args: Any) -> Any:
        """Tells submitit what to requeue when the time is up or the job is preempted."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *args)


def execute_on_slurm(
    runs: Sequence[StudyRun],
    tools: Path,
    partition: str,
    gpus: int = 1,
    minutes: int = 720,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Submits unfinished runs to a partition and waits for them, as `execute` does on this machine.

    The jobs outlive this process: called again, it waits for those that are still in the queue. A
    job that runs out of its `minutes` goes back to the queue. `options` are further ones of sbatch.

    Raises:
        UserError: submitit is not installed, or Slurm refuses the jobs.
    """
    try:
        import submitit
    except ImportError:
        remedy = "pip install -e '.[cluster]'"
        raise UserError('--slurm', 'submitit is not installed', remedy) from None
    waiting = unfinished(runs)
    queued = _queue()
    new = [run for run in waiting if _job_of(run) not in queued]
    if new:
        logs = new[0].out / 'slurm'
        # a run takes as many jobs as it needs: each goes on where the last was stopped
        executor = submitit.AutoExecutor(logs, cluster='slurm', slurm_max_num_timeout=10**6)
        # a partition without GPUs refuses a request for none
        per_node = dict(gpus_per_node=gpus) if gpus else {}
        slurm = dict(slurm_partition=partition, slurm_additional_parameters=dict(options or {}))
        executor.update_parameters(name='ablation', timeout_min=minutes, **slurm, **per_node)
        copies = [[value] * len(new) for value in (tools.resolve(), gpus)]
        try:
            jobs = executor.map_array(Job(), new, *copies)
        except submitit.core.utils.FailedJobError as error:
            raise UserError(f'--slurm {partition}: {str(error).strip().splitlines()[-1]}') from None
        for run, job in zip(new, jobs):
            # by which the next call finds the job in the queue
            (run.folder / 'job').write_text(job.job_id)
        print(f'submitted {counted(len(new), "job")}, logs in {logs}', flush=True)
    if len(new) < len(waiting):
        print(f'{counted(len(waiting) - len(new), "job")} in the queue already', flush=True)
    return _wait(waiting)


def _wait(waiting: Sequence[StudyRun]) -> list[str]:
    """Waits until no run is in the queue; returns a line for each that is still unfinished."""
    number, failures, states = len(waiting), [], dict[StudyRun, str]()
    active = list(waiting)
    try:
        while active:
            queued = _queue()
            for run in list(active):
                state = queued.get(_job_of(run), '')
                if state and state != states.get(run):
                    print(f'{run.name}: {state.lower()}, job {_job_of(run)}', flush=True)
                    states[run] = state
                if state:
                    continue
                active.remove(run)
                if run.next_step() is not None:
                    failures.append(run.outcome())
                print(f'[{number - len(active)}/{number}] {run.outcome()}', flush=True)
            if active:
                time.sleep(_POLLING)
    except KeyboardInterrupt:
        ids = ' '.join({_job_of(run).partition('_')[0] for run in active})
        print(f'the jobs go on; `scancel {ids}` ends them', flush=True)
        raise
    return failures


def _job_of(run: StudyRun) -> str:
    file = run.folder / 'job'
    return file.read_text().strip() if file.is_file() else ''


def _queue() -> dict[str, str]:
    """Returns the state of each of the user's jobs that has not ended, by id."""
    # squeue rather than sacct, which needs a database that not every cluster has
    command = ['squeue', '--me', '--array', '--noheader', '--format=%i %T']
    for _ in range(10):  # a busy controller may not answer at once
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return dict(line.split() for line in done.stdout.splitlines() if line.strip())
        time.sleep(_POLLING)
    raise UserError('squeue', done.stderr.strip(), 'a Slurm that answers')
