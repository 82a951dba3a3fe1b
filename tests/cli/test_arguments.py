import argparse
import os

import pytest

from mmseg_cct.cli.arguments import add_launcher, integer_from, method, set_ranks
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('option_type', 'value', 'message'),
    [
        *((integer_from(2), value, '; expected 2 or more$') for value in ['1', '-3', '2.5']),
        (method, 'unimtch', ': no such method; did you mean unimatch'),
        (method, 'mine.py', ': no such file'),
    ],
)
def test_other_values_are_an_error(option_type, value, message):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{value}{message}'):
        option_type(value)
    assert integer_from(2)('2') == 2 and method('unimatch') == 'unimatch'


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


@pytest.mark.usefixtures('environment')
def test_a_process_that_the_launcher_did_not_start_is_refused():
    with pytest.raises(UserError, match='slurm: SLURM_PROCID is not set; expected to be started'):
        ranks('--launcher', 'slurm')
