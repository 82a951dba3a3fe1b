from pathlib import Path

import pytest
from folders import CLASSES
from world import run_tool


def test_the_tool_says_what_it_found_and_what_to_run(data, capsys, monkeypatch):
    monkeypatch.chdir(data.parents[1])
    run_tool('new_config', 'data/mine', '--classes', *CLASSES, 'bolt', '--size', '64x40')
    assert len(Path('configs/mine/cct-strong_mbv2_mine.py').read_text().splitlines()) <= 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        'data/mine: 4 labelled and 4 unlabelled images of 64x40 pixels (median), 2 to validate on'
    )
    assert any('bolt (1 of ' in line and 'in none of the' in line for line in lines)
    assert lines[-4:] == [
        'Next:',
        '  mmseg-cct train configs/mine/cct-strong_mbv2_mine.py',
        '  mmseg-cct train configs/mine/cct-strong_mbv2_mine.py --method supervised',
        '  mmseg-cct report supervised=work_dirs/supervised_mbv2_mine '
        'cct-strong=work_dirs/cct-strong_mbv2_mine --out work_dirs/report',
    ]
    with pytest.raises(SystemExit):
        run_tool('new_config', 'data/mine', '--classes', *CLASSES, '--size', '64')
    assert '64; expected WIDTHxHEIGHT' in capsys.readouterr().err
