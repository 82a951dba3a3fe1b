import argparse
import os

import pytest
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.utils import cli
from mmseg_cct.utils.cli import (
    add_device,
    add_launcher,
    at_least,
    seed,
    set_ranks,
    user_errors_as_one_line,
)
from mmseg_cct.utils.library_errors import library_errors_as_one_line

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


def test_other_ranks_leave_the_word_to_the_first(environment, monkeypatch, capsys):
    waited = []
    monkeypatch.setattr(cli.time, 'sleep', waited.append)
    for rank in ('0', '1'):
        environment(RANK=rank)
        with pytest.raises(SystemExit) as stop, user_errors_as_one_line():
            raise UserError('wrong')
        assert stop.value.code == 2
        assert capsys.readouterr().err == 'error: wrong\n'
    assert waited == [cli._PATIENCE]


@pytest.mark.parametrize('error', [UserError('wrong'), FileNotFoundError(2, 'No such file', 'x')])
def test_a_process_that_ends_with_an_error_leaves_its_group(error, environment, capsys):
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
    with pytest.raises(SystemExit) as stop, user_errors_as_one_line():
        raise error
    assert stop.value.code == 2 and not torch.distributed.is_initialized()
    assert capsys.readouterr().err in ('error: wrong\n', 'error: x: No such file\n')


def test_a_full_gpu_is_a_line(environment, capsys):
    message = 'CUDA out of memory. Tried to allocate 2.00 GiB.'
    with (
        pytest.raises(SystemExit),
        user_errors_as_one_line(),
        library_errors_as_one_line('model', 'fails at its first batch', 'another'),
    ):
        raise torch.cuda.OutOfMemoryError(message)
    line = capsys.readouterr().err
    assert line.startswith(f'error: OutOfMemoryError: {message}; expected what fits: a smaller')
    assert line.count('\n') == 1


def test_rank_0_stays_until_the_others_have_asked(environment, monkeypatch, capsys):
    store, waited = torch.distributed.HashStore(), []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            store.add('mmseg_cct/error/wrong', 1)

    monkeypatch.setattr(cli.time, 'sleep', sleep)
    monkeypatch.setattr(torch.distributed.distributed_c10d, '_get_default_store', lambda: store)
    monkeypatch.setattr(torch.distributed, 'is_initialized', lambda: True)
    monkeypatch.setattr(torch.distributed, 'get_rank', lambda: 0)
    monkeypatch.setattr(torch.distributed, 'get_world_size', lambda: 2)
    monkeypatch.setattr(torch.distributed, 'get_backend', lambda: 'nccl')
    with pytest.raises(SystemExit), user_errors_as_one_line():
        raise UserError('wrong')
    assert len(waited) == 3 and capsys.readouterr().err == 'error: wrong\n'


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


def device(value):
    parser = argparse.ArgumentParser()
    add_device(parser)
    return parser.parse_args(['--device', value]).device


def test_devices(monkeypatch):
    monkeypatch.setattr('torch.cuda.device_count', lambda: 2)
    monkeypatch.setattr('torch.backends.mps.is_available', lambda: True)
    for value in ('cpu', 'cuda', 'cuda:1', 'mps'):
        assert device(value) == value


@pytest.mark.parametrize(
    ('value', 'message'),
    [
        ('meta', "'meta'; expected cpu, cuda, cuda:1 or mps"),
        ('gpu7', "'gpu7'; expected cpu, cuda, cuda:1 or mps"),
        ('cuda:2', 'cuda:2; there are 2 GPUs'),
        ('mps', 'mps; this machine has none'),
    ],
)
def test_what_is_no_device(value, message, monkeypatch, capsys):
    monkeypatch.setattr('torch.cuda.device_count', lambda: 2)
    monkeypatch.setattr('torch.backends.mps.is_available', lambda: False)
    with pytest.raises(SystemExit):
        device(value)
    assert message in capsys.readouterr().err
