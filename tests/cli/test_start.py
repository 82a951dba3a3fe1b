import argparse
import sys

import pytest

from mmseg_cct.cli import start as started
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


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr('torch.cuda.device_count', lambda: 2)
    monkeypatch.setattr('torch.backends.mps.is_available', lambda: False)


@pytest.mark.parametrize(
    ('device', 'message'),
    [
        ('cuda:2', 'cuda:2: this machine has 2 GPUs; expected cuda:0 to cuda:1'),
        ('mps', 'mps: this machine has none; leave --device out'),
    ],
)
def test_a_device_that_does_not_exist(device, message, two_gpus, capsys):
    for there in ('cpu', 'cuda', 'cuda:1', None):
        assert start(device=there).device == there
    with pytest.raises(SystemExit):
        start(device=device)
    assert capsys.readouterr().err == f'error: --device {message}\n'


def test_ranks_come_before_all_else(monkeypatch, capsys):
    monkeypatch.delenv('RANK', raising=False)
    with pytest.raises(SystemExit):
        start(launcher='pytorch', local_rank=0, device='mps')
    assert 'pytorch: RANK is not set' in capsys.readouterr().err


def test_a_terminal_hears_at_once_that_torch_is_loaded(monkeypatch, capsys):
    monkeypatch.delenv('RANK', raising=False)
    start()
    assert capsys.readouterr().err == ''  # no terminal, and torch is there
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: True)
    monkeypatch.delitem(sys.modules, 'torch')
    started.greet()
    assert capsys.readouterr().err == 'loading PyTorch and MMSegmentation ...\n'
    monkeypatch.setenv('RANK', '1')
    started.greet()
    assert capsys.readouterr().err == ''
