"""The scripts that start several processes; those for Slurm run where there is one."""

import json
import os
import shutil
import subprocess

import pytest

SINFO = ['sinfo', '--noheader', '--format=%R']


def partitions():
    found = subprocess.run(SINFO, text=True, capture_output=True, timeout=60)
    return [] if found.returncode else found.stdout.split()


@pytest.fixture(scope='module')
def partition(slow):
    """The first partition of the Slurm at hand."""
    if shutil.which('sinfo') is None or not (found := partitions()):
        pytest.skip('no Slurm here')
    return found[0]


def on_cpus(run, script, partition, *arguments):
    variables = ('GPUS=2', 'GPUS_PER_NODE=0', 'CPUS_PER_TASK=1', 'SRUN_ARGS=--overcommit')
    return run.shell('env', *variables, 'bash', run.tools / script, partition, 'cct', *arguments)


def test_slurm_trains_and_tests_on_two_tasks(cct, partition):
    done = on_cpus(cct, 'slurm_train.sh', partition, cct.file, '--work-dir', 'work')
    assert done.returncode == 0, done.stderr
    checkpoint = cct.folder / 'work' / 'iter_2.pth'
    done = on_cpus(cct, 'slurm_test.sh', partition, cct.file, checkpoint, '--work-dir', 'test')
    assert done.returncode == 0, done.stderr
    (metrics,) = (cct.folder / 'test').glob('*/*.json')
    assert json.loads(metrics.read_text())['mIoU'] >= 0


@pytest.mark.parametrize(
    'arguments', [('train', 'c.py', '--resume'), ('test', 'c.py', 'c.pth', '--tta')]
)
def test_a_forgotten_number_of_processes_is_one_line(cct, arguments):
    name, *rest = arguments
    done = cct.shell('bash', cct.tools / f'dist_{name}.sh', *rest)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f'error: PROCESSES={rest[-1]}; expected a whole number, as in: ')


@pytest.mark.parametrize(
    ('variables', 'where'),
    [
        (dict(GPUS='16'), '--gres=gpu:4 --ntasks-per-node=4 --ntasks=16'),
        (dict(GPUS='2', GPUS_PER_NODE='0'), '--job-name=cct --ntasks=2'),
    ],
)
def test_a_node_gives_no_more_gpus_than_are_used(variables, where, project_root, tmp_path):
    srun = tmp_path / 'srun'
    srun.write_text('#!/bin/sh\necho "$@"\n')
    srun.chmod(0o755)
    path = f'{tmp_path}{os.pathsep}{os.environ["PATH"]}'
    for script in ('slurm_train.sh', 'slurm_test.sh'):
        command = ['bash', project_root / 'tools' / script, 'gpus', 'cct', 'a.py', 'b.pth']
        environment = {**os.environ, **variables, 'PATH': path}
        assert where in subprocess.check_output(command, text=True, env=environment)
