import os
import subprocess

import pytest


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
