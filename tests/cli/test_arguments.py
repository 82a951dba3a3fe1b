import argparse
import os

import pytest

from mmseg_cct.cli.arguments import (
    add_cfg_options,
    add_device,
    add_launcher,
    at_least,
    method,
    seed,
    set_ranks,
    tool_parser,
)
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('kind', 'texts', 'values'),
    [
        (at_least(0), ['0', '17'], [0, 17]),
        (seed, ['0', '4294967295'], [0, 2**32 - 1]),
        (method, ['unimatch', __file__], ['unimatch', __file__]),
    ],
)
def test_values(kind, texts, values):
    assert list(map(kind, texts)) == values


@pytest.mark.parametrize(
    ('kind', 'value', 'message'),
    [
        *((at_least(2), value, '; expected 2 or more$') for value in ['1', '-3', '2.5', 'two', '']),
        *(
            (seed, value, f'; expected 0 to {2**32 - 1}$')
            for value in ['-1', str(2**32), '1e3', '']
        ),
        (method, 'unimtch', ': no such method; did you mean unimatch'),
        (method, 'mine.py', ': no such file'),
    ],
)
def test_other_values_are_an_error(kind, value, message):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}{message}'):
        kind(value)


def parse(add, *texts):
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(texts)


def test_devices_and_settings_which_add_up():
    for value in ('cpu', 'cuda', 'cuda:1', 'mps'):
        assert parse(add_device, '--device', value).device == value
    texts = ['--cfg-options', 'a=1', 'b.c=x=y', '--cfg-options', 'd=']
    assert parse(add_cfg_options, *texts).cfg_options == ['a=1', 'b.c=x=y', 'd=']
    assert parse(add_cfg_options).cfg_options == []


@pytest.mark.parametrize(
    ('add', 'option', 'text', 'expected'),
    [
        *(
            (add_device, '--device', text, 'cpu, cuda, cuda:1 or mps')
            for text in ('meta', 'gpu7', 'cuda:', 'cuda:x', 'cpu ')
        ),
        *(
            (add_cfg_options, '--cfg-options', text, 'KEY=VALUE without spaces')
            for text in ('a', '=1', '.=1', ' =1')
        ),
    ],
)
def test_what_is_no_device_or_setting(add, option, text, expected, capsys):
    with pytest.raises(SystemExit):
        parse(add, option, text)
    assert f'{text!r}; expected {expected}' in capsys.readouterr().err


def test_a_tool_of_another_checkout_ends_and_one_that_was_copied_does_not(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr('sys.argv', [str(tmp_path / 'tools/train.py')])
    tool_parser('x')
    (tmp_path / 'mmseg_cct').mkdir()
    with pytest.raises(SystemExit) as stop:
        tool_parser('x')
    assert stop.value.code == 2 and f'PYTHONPATH={tmp_path}' in capsys.readouterr().err


RANK_VARIABLES = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')


@pytest.fixture
def environment(monkeypatch):
    """Sets variables of a launcher; those of all others are away, and come back."""
    for name in [*RANK_VARIABLES, *(name for name in os.environ if name.startswith('SLURM_'))]:
        monkeypatch.setenv(name, '')  # so that it is restored, whoever sets it
        monkeypatch.delenv(name)

    def update(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return update


def ranks(*arguments):
    parser = argparse.ArgumentParser()
    add_launcher(parser)
    set_ranks(parser.parse_args(arguments))
    return {name: os.environ[name] for name in RANK_VARIABLES if name in os.environ}


def test_without_a_launcher_there_is_one_process(environment):
    assert ranks() == dict(LOCAL_RANK='0')
    environment(LOCAL_RANK='')
    os.environ.pop('LOCAL_RANK')
    assert ranks('--local-rank', '3') == dict(LOCAL_RANK='3')


TASK = dict(SLURM_PROCID='5', SLURM_LOCALID='1', SLURM_NTASKS='8', SLURM_JOB_ID='30007')


@pytest.mark.parametrize(('host', 'port'), [('127.0.0.1', '20007'), ('10.0.0.1', '7')])
def test_ranks_of_slurm_are_those_of_torchrun(environment, host, port):
    environment(**TASK, SLURM_NNODES='1')
    if port == '7':
        environment(MASTER_ADDR=host, MASTER_PORT=port)  # what is set is kept
    expected = dict(RANK='5', LOCAL_RANK='1', WORLD_SIZE='8', MASTER_ADDR=host, MASTER_PORT=port)
    assert ranks('--launcher', 'slurm') == expected


def test_the_first_node_is_the_master(environment, tmp_path):
    scontrol = tmp_path / 'scontrol'
    scontrol.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[3-4]" ] && echo n3 && echo n4\n')
    scontrol.chmod(0o755)
    path = f'{tmp_path}{os.pathsep}{os.environ["PATH"]}'
    environment(**TASK, SLURM_NNODES='2', SLURM_NODELIST='n[3-4]', PATH=path)
    assert ranks('--launcher', 'slurm')['MASTER_ADDR'] == 'n3'


@pytest.mark.parametrize(
    ('launcher', 'message'),
    [
        ('pytorch', r'pytorch: RANK is not set; expected to be started by torchrun or tools/dist_'),
        ('slurm', r'slurm: SLURM_PROCID is not set; expected to be started by srun'),
        ('mpi', r'mpi: OMPI_COMM_WORLD_RANK is not set; expected to be started by mpirun'),
    ],
)
def test_a_process_that_the_launcher_did_not_start_is_refused(environment, launcher, message):
    with pytest.raises(UserError, match=message):
        ranks('--launcher', launcher)
