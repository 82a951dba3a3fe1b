from pathlib import Path

import pytest

from mmseg_cct.utils.rounds import next_round


def test_the_working_directory_has_a_next_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert next_round(Path('.')) == tmp_path.with_name(f'{tmp_path.name}-round2')


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('runs/mine', 'runs/mine-round2'),
        ('runs/mine.v2-round9', 'runs/mine.v2-round10'),
        ('a/cct_mine.v2.py', 'a/cct_mine.v2-round2.py'),
        ('a/cct_mine-round2.py', 'a/cct_mine-round3.py'),
    ],
)
def test_rounds_are_counted(name, expected):
    assert next_round(Path(name)) == Path(expected)
