from mmseg_cct.cli.commands import commands, commands_after_training


def test_every_tool_is_a_command(project_root):
    tools = {path.name for path in (project_root / 'tools').glob('*.py')}
    assert {path.name for path in commands().values()} == tools
    assert {'train', 'test', 'predict', 'make-pseudo-labels'} <= set(commands())


def test_a_trained_model_is_used_and_judged_as_is_one_of_its_domains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    predict, report = commands_after_training(tmp_path, 'cct')
    assert ' predict . IMAGES' in predict and report.endswith(' report cct=. --out report')
    for command in commands_after_training(tmp_path, 'cct', 'camvid'):
        assert '--domain camvid' in command
