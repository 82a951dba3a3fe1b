import os
import subprocess
import sys
import sysconfig
from pathlib import Path

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


def test_an_environment_with_other_builds_of_openmmlab_is_left_as_it_is(project_root, tmp_path):
    packages = sysconfig.get_path('purelib', 'posix_prefix', {'base': tmp_path})
    for name in ('mmcv_full-1.7.2', 'mmsegmentation-1.2.2'):
        folder = Path(packages, f'{name}.dist-info')
        folder.mkdir(parents=True)
        project, _, version = name.partition('-')
        (folder / 'METADATA').write_text(f'Name: {project}\nVersion: {version}\n')
    (tmp_path / 'pyvenv.cfg').write_text(f'home = {Path(sys.executable).resolve().parent}\n')
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin' / 'python').symlink_to(sys.executable)
    before = sorted(tmp_path.rglob('*'))
    done = subprocess.run(
        ['bash', '-c', 'source tools/setup_venv.sh; setup_venv'],
        cwd=project_root, text=True, capture_output=True,
        env={**os.environ, 'VIRTUAL_ENV': str(tmp_path)},
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and line.startswith(f'error: {tmp_path} has mmcv-full mmsegm')
    assert sorted(tmp_path.rglob('*')) == before  # pip did not run
