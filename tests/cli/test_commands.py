from mmseg_cct.cli.commands import commands


def test_every_tool_is_a_command(project_root):
    tools = {path.name for path in (project_root / 'tools').glob('*.py')}
    assert {path.name for path in commands().values()} == tools
    assert {'train', 'test', 'predict', 'make-pseudo-labels'} <= set(commands())
