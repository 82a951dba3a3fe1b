import argparse

import pytest

from mmseg_cct.cli.arguments import add_cfg_options, add_device, at_least, method, seed


def test_at_least():
    assert [at_least(2)('2'), at_least(0)('0'), at_least(1)('17')] == [2, 0, 17]


@pytest.mark.parametrize('value', ['1', '-3', '2.5', 'two', ''])
def test_less_or_no_number_is_an_error(value):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}; expected 2 or more$'):
        at_least(2)(value)


def test_seeds():
    assert [seed('0'), seed('4294967295')] == [0, 2**32 - 1]


@pytest.mark.parametrize('value', ['-1', '4294967296', '1e3', 'x', ''])
def test_what_is_no_seed(value):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}; expected 0 to 4294967295$'):
        seed(value)


def test_methods(tmp_path):
    own = tmp_path / 'mine.py'
    own.touch()
    assert [method('unimatch'), method(str(own))] == ['unimatch', str(own)]


@pytest.mark.parametrize(
    ('value', 'message'),
    [('unimtch', 'no such method; did you mean unimatch'), ('mine.py', 'no such file')],
)
def test_what_is_no_method(value, message):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}: {message}'):
        method(value)


def parse(add, *texts):
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(texts)


@pytest.mark.parametrize('value', ['cpu', 'cuda', 'cuda:1', 'mps'])
def test_devices(value):
    assert parse(add_device, '--device', value).device == value


@pytest.mark.parametrize('value', ['meta', 'gpu7', 'cuda:', 'cuda:x', 'cpu '])
def test_what_is_no_device(value, capsys):
    with pytest.raises(SystemExit):
        parse(add_device, '--device', value)
    assert f'{value!r}; expected cpu, cuda, cuda:1 or mps' in capsys.readouterr().err


def test_settings_add_up():
    texts = ['--cfg-options', 'a=1', 'b.c=x=y', '--cfg-options', 'd=']
    assert parse(add_cfg_options, *texts).cfg_options == ['a=1', 'b.c=x=y', 'd=']
    assert parse(add_cfg_options).cfg_options == []


@pytest.mark.parametrize('text', ['a', '=1', '.=1', ' =1'])
def test_what_is_no_setting(text, capsys):
    with pytest.raises(SystemExit):
        parse(add_cfg_options, '--cfg-options', text)
    assert f'{text!r}; expected KEY=VALUE without spaces' in capsys.readouterr().err
