"""The script for a machine with a GPU: what it refuses, skips and reports."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from mmseg_cct.config.compose import read_method

STEPS = [
    *('machine', 'tests', 'tests-gpu', 'branch-float32', 'branch-bfloat16'),
    *('branch-perturbations', 'branch-growth', 'step-r50-float32', 'step-r50-bfloat16'),
    *('step-mbv2', 'step-methods'),
]


def call(project_root, *arguments, **environment):
    return subprocess.run(
        ['bash', project_root / 'benchmarks/on_gpu.sh', *map(str, arguments)],
        env=dict(os.environ, DEVICE='cpu', SIZE='tiny', **environment),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    'arguments, environment, message',
    [
        ([], {}, 'Usage: bash benchmarks/on_gpu.sh OUT'),
        (['--help'], {}, 'Usage: bash benchmarks/on_gpu.sh OUT'),
        (['{out}', 'long'], {}, 'HOURS=long; expected a whole number'),
        (['{out}'], dict(DATA='no/such'), 'DATA=no/such: no train.txt in it'),
        (['{out}', 0], dict(REFERENCE='no/such'), 'REFERENCE=no/such: no such folder'),
        (['{out}', 0], dict(WEIGHTS='no/such.pth'), 'WEIGHTS=no/such.pth: no such file'),
    ],
)
def test_what_it_cannot_work_with_is_named(project_root, tmp_path, arguments, environment, message):
    arguments = [str(argument).format(out=tmp_path / 'out') for argument in arguments]
    done = call(project_root, *arguments, **environment)
    assert done.returncode == 2
    assert message in done.stderr


def test_done_steps_are_skipped_and_failed_ones_reported(project_root, tmp_path):
    out = tmp_path / 'out'
    for name in STEPS:
        if name != 'tests':
            marker = out / 'done' / name
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
    logs = out / 'logs'
    logs.mkdir()
    (logs / 'branch-float32.log').write_text('$ python it.py\nnoise\n### A table\n\n| a |\n')
    # a Python that has no tests
    fake = tmp_path / 'bin/python'
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho no module named pytest\nexit 4\n')
    fake.chmod(0o755)
    path = f'{fake.parent}:{os.environ["PATH"]}'
    done = call(project_root, out, 0, PATH=path)
    assert done.returncode == 1
    assert 'branch-growth: done already, skipped' in done.stdout
    assert 'tests: failed with exit code 4: no module named pytest' in done.stdout
    summary = Path(out, 'summary.md').read_text()
    assert '    python it.py\n\n### A table\n\n| a |\n' in summary and 'noise' not in summary
    assert 'SIZE=tiny: these figures mean nothing' in summary
    assert summary.endswith('Failed: tests\n')

    calls = tmp_path / 'calls'
    fake.write_text(f'#!/bin/sh\necho "$@" >>{calls}\necho 1 passed\n')
    data = tmp_path / 'camvid'  # what it asks of CamVid: the fake Python reads nothing
    data.mkdir()
    (data / 'train.txt').touch()
    again = call(project_root, out, '08', PATH=path, DATA=str(data))  # eight, no octal number
    assert again.returncode == 0
    assert 'Failed' not in Path(out, 'summary.md').read_text()
    assert Path(out, 'done/tests').exists()
    runs = [line.split() for line in calls.read_text().splitlines() if 'ablation.py' in line]
    assert len(runs) == 5  # seeds
    for run in runs:
        methods = run[run.index('--methods') + 1 : run.index('-n')]
        assert len(methods) == 4
        for method in methods:
            read_method(method)  # refuses unknown ones


def test_its_configs_exist(project_root):
    script = (project_root / 'benchmarks/on_gpu.sh').read_text()
    configs = set(re.findall(r'configs/[^\s;]+\.py', script))
    assert len(configs) == 4
    assert [config for config in configs if not (project_root / config).is_file()] == []
