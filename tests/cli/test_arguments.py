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
)
from mmseg_cct.errors import UserError


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


def test_ranks_of_slurm_are_those_of_torchrun(environment):
    task = dict(SLURM_PROCID='5', SLURM_LOCALID='1', SLURM_NTASKS='8', SLURM_JOB_ID='30007')
    environment(**task, SLURM_NNODES='1')
    expected = dict(RANK='5', LOCAL_RANK='1', WORLD_SIZE='8')
    assert ranks('--launcher', 'slurm') == expected | dict(
        MASTER_ADDR='127.0.0.1', MASTER_PORT='20007'
    )


def test_the_first_node_is_the_master(environment, tmp_path):
    scontrol = tmp_path / 'scontrol'
    scontrol.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[3-4]" ] && echo n3 && echo n4\n')
    scontrol.chmod(0o755)
    environment(
        SLURM_PROCID='1', SLURM_LOCALID='0', SLURM_NTASKS='2', SLURM_JOB_ID='1', SLURM_NNODES='2',
        SLURM_NODELIST='n[3-4]', PATH=f'{tmp_path}{os.pathsep}{os.environ["PATH"]}',
    )  # fmt: skip
    assert ranks('--launcher', 'slurm')['MASTER_ADDR'] == 'n3'


def test_an_address_that_is_set_is_kept(environment):
    environment(
        SLURM_PROCID='0', SLURM_LOCALID='0', SLURM_NTASKS='1', SLURM_JOB_ID='1', SLURM_NNODES='1',
        MASTER_ADDR='10.0.0.1', MASTER_PORT='7',
    )  # fmt: skip
    found = ranks('--launcher', 'slurm')
    assert (found['MASTER_ADDR'], found['MASTER_PORT']) == ('10.0.0.1', '7')


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
