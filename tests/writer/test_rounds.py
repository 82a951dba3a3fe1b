from pathlib import Path

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.rounds import next_round
from mmseg_cct.writer.rounds import file_of_round, report_of_rounds


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


def test_a_setting_of_more_masks_is_the_next_round(tmp_path):
    first = tmp_path / 'cct_mine.py'
    expected = [first, tmp_path / 'cct_mine-round2.py', tmp_path / 'cct_mine-round3.py']
    for number, path in enumerate(expected):
        assert file_of_round(first, f'# {number} masks') == path
        path.write_text(f'# {number} masks\nmethod = "cct"\n')
        with pytest.raises(UserError, match=f'{path}: exists for this number of masks; expec'):
            file_of_round(first, f'# {number} masks')
    assert report_of_rounds(first, first) == ()
    (command,) = report_of_rounds(first, expected[1])
    assert command.endswith(
        ' round1=work_dirs/cct_mine round2=work_dirs/cct_mine-round2 --out '
        'work_dirs/rounds_cct_mine'
    )
