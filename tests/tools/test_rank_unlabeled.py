import pytest


def test_the_command_line(tiny, tiny_cct, tmp_path, capsys):
    arguments = tiny_cct.config, tiny_cct.checkpoint
    out = tmp_path / 'out'
    assert tiny.run('rank_unlabeled', *arguments, '--from-config', '--out', out, '--top', 2) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(f'4 images ranked in {out}, first {tiny_cct.images}')
    assert line.endswith('; 0 unreadable')
    assert {path.name for path in out.iterdir()} == {
        'ranking.csv',
        'ranking.json',
        'contact_sheet.png',
        'scores',
    }

    for wrong, message in (
        ([], 'one of the arguments --images --from-config is required'),
        (['--from-config', '--top', '0'], 'argument --top: 0; expected 1 or more'),
    ):
        with pytest.raises(SystemExit) as stop:
            tiny.run('rank_unlabeled', *arguments, '--out', out, *wrong)
        assert stop.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1].endswith(message)
