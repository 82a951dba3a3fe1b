import os
import pickle
import sys
import types

import pytest

from mmseg_cct.studies import cluster
from mmseg_cct.studies.cluster import execute_on_slurm


class Executor:
    """submitit's, with jobs that end at once: those of `works` with a result."""

    works = True

    def __init__(self, folder, **options):
        self.folder, self.parameters, self.submitted = folder, options, []
        Executor.last = self

    def update_parameters(self, **parameters):
        self.parameters |= parameters

    def map_array(self, function, runs, *arguments):
        self.submitted = list(zip(runs, *arguments))
        for each in self.submitted if self.works else ():
            job = pickle.loads(pickle.dumps((function, *each)))  # as it travels to a node
            job[0](*job[1:])
        return [types.SimpleNamespace(job_id=f'7_{index}') for index in range(len(runs))]


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A Slurm whose queue is a file; its jobs are those of `Executor`."""
    file = tmp_path / 'queue'
    file.touch()
    squeue = tmp_path / 'bin' / 'squeue'
    squeue.parent.mkdir()
    squeue.write_text(f'#!/bin/sh\ncat {file}\n')
    squeue.chmod(0o755)
    monkeypatch.setenv('PATH', f'{squeue.parent}{os.pathsep}{os.environ["PATH"]}')
    monkeypatch.setattr(cluster, '_POLLING', 0.01)
    monkeypatch.setitem(sys.modules, 'submitit', types.SimpleNamespace(AutoExecutor=Executor))
    return file


def test_unfinished_runs_are_an_array_of_jobs(queue, fake_tools, make_run, capsys):
    runs = [make_run('a'), make_run('b')]
    expected = dict(slurm_partition='gpu', timeout_min=60)
    expected['slurm_additional_parameters'] = options = dict(account='me')
    assert execute_on_slurm(runs, fake_tools, 'gpu', 0, 60, options) == []
    assert expected.items() <= Executor.last.parameters.items()
    assert [(run.folder / 'job').read_text() for run in runs] == ['7_0', '7_1']
    printed = capsys.readouterr().out
    assert "[2/2] b, the config's labels, seed 0: mIoU 50" in printed
    assert execute_on_slurm(runs, fake_tools, 'gpu', 0) == []
    assert capsys.readouterr().out == '2 of 2 runs finished, skipped\n'


def test_what_is_in_the_queue_is_waited_for(queue, fake_tools, make_run, capsys):
    queued, new = make_run('queued'), make_run('new')
    (queued.folder / 'job').write_text('5_3')
    queue.write_text('5_3 RUNNING\n9 PENDING\n')

    def wait(seconds):
        queue.write_text('9 PENDING\n')  # it has ended, without a result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster.time, 'sleep', wait)
        (failure,) = execute_on_slurm([queued, new], fake_tools, 'gpu', gpus=0)
    assert [run for run, *_ in Executor.last.submitted] == [new]
    assert failure.startswith(f'{queued.name}: train FAILED')
    assert '1 job in the queue already' in capsys.readouterr().out


def test_jobs_go_on_after_ctrl_c(queue, fake_tools, make_run, monkeypatch, capsys):
    run = make_run('a')
    monkeypatch.setattr(Executor, 'works', False)
    queue.write_text('7_0 PENDING\n')

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster.time, 'sleep', stop)
    with pytest.raises(KeyboardInterrupt):
        execute_on_slurm([run], fake_tools, 'gpu', gpus=2)
    assert 'the jobs go on; `scancel 7` ends them' in capsys.readouterr().out
    assert Executor.last.parameters['gpus_per_node'] == 2
    assert Executor.last.submitted[0][2] == 2
