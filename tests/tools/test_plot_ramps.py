def test_the_command_line(tiny, capsys):
    tiny.run('plot_ramps', tiny.config, '--out', 'new/ramps')
    assert 'wrote new/ramps.png' in capsys.readouterr().out
    assert (tiny.folder / 'new/ramps.png').read_bytes().startswith(b'\x89PNG')
    tiny.run('plot_ramps', tiny.config, '--out', 'v1.2')
    assert (tiny.folder / 'v1.2.png').is_file()
