import argparse
import subprocess
import sys

import pytest

from mmseg_cct.cli.start import running


def start(**arguments):
    args = argparse.Namespace(**arguments)
    with running(args):
        pass
    return args


def test_settings_have_values():
    texts = ['a.b=1', 'c=[1,(2,x)]', 'd=true', 'e=None', 'f=x=y', 'g=0.5', 'a.b=2']
    expected = {'a.b': 2, 'c': [1, (2, 'x')], 'd': True, 'e': None, 'f': 'x=y', 'g': 0.5}
    assert start(cfg_options=texts).cfg_options == expected
    assert start(cfg_options=[]).cfg_options == {}


@pytest.mark.parametrize('text', ['a=[dict(b=1,c=2)]', 'a=[1,(2', 'a=(1,[2)]'])
def test_a_setting_that_cannot_be_read_is_one_line(text, capsys):
    with pytest.raises(SystemExit):
        start(cfg_options=['b=1', text])
    line = f'error: --cfg-options {text}: expected a value or a list; a dict key by key\n'
    assert capsys.readouterr().err == line


@pytest.mark.parametrize('device', ['cuda:2', 'mps'])
def test_a_device_that_does_not_exist(device, monkeypatch, capsys):
    monkeypatch.setattr('torch.cuda.device_count', lambda: 2)
    monkeypatch.setattr('torch.backends.mps.is_available', lambda: False)
    for there in ('cpu', 'cuda', 'cuda:1', None):
        assert start(device=there).device == there
    with pytest.raises(SystemExit):
        start(device=device)
    assert capsys.readouterr().err.startswith(f'error: --device {device}: ')


def test_ranks_come_before_all_else(monkeypatch, capsys):
    monkeypatch.delenv('RANK', raising=False)
    with pytest.raises(SystemExit):
        start(launcher='pytorch', local_rank=0, device='mps')
    assert 'pytorch: RANK is not set' in capsys.readouterr().err


@pytest.mark.slow
def test_the_dependencies_start_no_program_and_say_nothing_that_misleads():
    code = (
        'import argparse, torch\n'
        'from mmseg_cct.cli.start import running\n'
        'with running(argparse.Namespace()):\n'
        '    from mmengine.visualization import Visualizer\n'
        '    from mmseg.engine.hooks import SegVisualizationHook\n'
        '    Visualizer.get_instance("visualizer")\n'
        '    SegVisualizationHook()\n'
        '    from PIL import EpsImagePlugin\n'
        '    assert EpsImagePlugin.gs_binary is False\n'
        '    torch.func.jvp(lambda x: x.trace(), (torch.eye(3),), (torch.eye(3),))\n'
    )
    done = subprocess.run([sys.executable, '-c', code], text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
