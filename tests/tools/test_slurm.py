"""The scripts for Slurm, where one answers: tools/local_slurm.sh starts one on this machine."""

import json
import shutil
import subprocess

import pytest

SINFO = ['sinfo', '--noheader', '--format=%R']


@pytest.fixture(scope='module')
def partition():
    """The first partition of the Slurm at hand."""
    if shutil.which('sinfo') is None:
        pytest.skip('no Slurm here (tools/local_slurm.sh starts one)')
    found = subprocess.run(SINFO, text=True, capture_output=True, timeout=60)
    if found.returncode or not found.stdout.split():
        pytest.skip('no Slurm answers sinfo (tools/local_slurm.sh starts one)')
    return found.stdout.split()[0]


def on_cpus(run, script, partition, *arguments):
    variables = ('GPUS=2', 'GPUS_PER_NODE=0', 'CPUS_PER_TASK=1', 'SRUN_ARGS=--overcommit')
    return run.shell('env', *variables, 'bash', run.tools / script, partition, 'cct', *arguments)


def test_slurm_trains_and_tests_on_two_tasks(tiny, partition):
    done = on_cpus(tiny, 'slurm_train.sh', partition, tiny.config, '--work-dir', 'work')
    assert done.returncode == 0, done.stderr
    checkpoint = tiny.folder / 'work' / 'iter_2.pth'
    done = on_cpus(tiny, 'slurm_test.sh', partition, tiny.config, checkpoint, '--work-dir', 'test')
    assert done.returncode == 0, done.stderr
    (metrics,) = (tiny.folder / 'test').glob('*/*.json')
    assert json.loads(metrics.read_text())['mIoU'] >= 0


def test_a_mistake_is_said_once(tiny, partition):
    done = on_cpus(tiny, 'slurm_train.sh', partition, 'none.py')
    lines = [line for line in done.stderr.splitlines() if line.startswith('error: ')]
    assert lines == ['error: none.py: no such config file']
    assert done.returncode != 0
