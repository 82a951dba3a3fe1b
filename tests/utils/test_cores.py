"""As many threads and workers as a process may have cores for."""

import os

import pytest

from mmseg_cct.utils import cores
from mmseg_cct.utils.cores import choose_threads, usable_cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Eight cores and a folder of cgroups."""
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores, '_CGROUP', tmp_path)
    for name in ('OMP_WAIT_POLICY', 'OMP_NUM_THREADS'):
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)
    return tmp_path


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace('__', '/')
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ('files', 'expected'),
    [
        ({}, 8),
        ({'cpu.max': 'max 100000\n'}, 8),
        ({'cpu.max': '250000 100000\n'}, 2),
        ({'cpu.max': '50000 100000\n'}, 1),
        ({'cpu.max': '9900000 100000\n'}, 8),
        ({'cpu.max': 'broken'}, 8),
        ({'cpu__cpu.cfs_quota_us': '300000\n', 'cpu__cpu.cfs_period_us': '100000\n'}, 3),
        ({'cpu__cpu.cfs_quota_us': '-1\n', 'cpu__cpu.cfs_period_us': '100000\n'}, 8),
    ],
)
def test_cores_are_those_of_affinity_and_quota(machine, files, expected):
    write(machine, **files)
    assert usable_cores() == expected
    choose_threads()
    assert os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'
    # without a quota torch knows better: it counts no hyperthreads
    assert os.environ.get('OMP_NUM_THREADS') == (str(expected) if expected < 8 else None)


def test_what_the_user_has_set_wins(machine, monkeypatch):
    write(machine, **{'cpu.max': '200000 100000'})
    for name, value in (('OMP_WAIT_POLICY', 'ACTIVE'), ('OMP_NUM_THREADS', '5')):
        monkeypatch.setenv(name, value)
    choose_threads()
    assert (os.environ['OMP_WAIT_POLICY'], os.environ['OMP_NUM_THREADS']) == ('ACTIVE', '5')
