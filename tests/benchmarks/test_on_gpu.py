import os
import subprocess

PATH = 'benchmarks/on_gpu.sh'


def call(project_root, *arguments, **environment):
    command = ['bash', project_root / PATH, *arguments]
    env = dict(os.environ, DEVICE='cpu', SIZE='tiny', **environment)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_done_steps_are_skipped_and_failed_ones_reported(project_root, tmp_path):
    done = call(project_root)
    assert done.returncode == 2 and f'Usage: bash {PATH} OUT' in done.stderr
    fake = tmp_path / 'bin/python'  # a Python that has no tests
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\ncase "$*" in *"-m pytest"*) echo no pytest; exit 4;; esac\n')
    fake.chmod(0o755)
    path = f'{fake.parent}:{os.environ["PATH"]}'
    first, again = (call(project_root, tmp_path / 'out', PATH=path) for _ in range(2))
    for done in (first, again):
        assert done.returncode == 1
        assert 'tests: failed with exit code 4: no pytest' in done.stdout
        assert 'failed: tests tests-gpu' in done.stdout
    assert 'done already' not in first.stdout and 'step-methods: done already' in again.stdout
