import os
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch

from mmseg_cct.cli import errors
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.errors import TRACEBACK_VARIABLE, Interrupted, UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line


@pytest.fixture(autouse=True)
def _rank_0(monkeypatch):
    monkeypatch.delenv('RANK', raising=False)


@pytest.mark.parametrize('rank', ['0', '1'])
def test_a_tool_ends_with_one_line_and_code_2_on_rank_0_first(rank, capsys, monkeypatch):
    waited = []
    monkeypatch.setenv('RANK', rank)
    monkeypatch.setattr(
        errors.time, 'sleep', lambda seconds: waited.append((seconds, capsys.readouterr().err))
    )
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')
    assert caught.value.code == 2
    assert waited == ([(5.0, '')] if rank == '1' else [])
    assert capsys.readouterr() == ('', 'error: a.png: bad; expected good\n')


def test_a_variable_asks_for_the_traceback(monkeypatch):
    monkeypatch.setenv(TRACEBACK_VARIABLE, '1')
    with pytest.raises(UserError), user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')
    with pytest.raises(KeyError), user_errors_as_one_line():  # it is always shown
        raise KeyError('bug')


@pytest.mark.parametrize(
    ('name', 'value', 'read'),
    [
        ('LOCAL_WORLD_SIZE', 'two', lambda: int(os.environ['LOCAL_WORLD_SIZE'])),
        ('MPLBACKEND', 'nope', lambda: matplotlib.rcParams.update(backend='nope')),
    ],
)
def test_a_variable_that_a_library_refuses_is_named(name, value, read, capsys, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit), user_errors_as_one_line():
        read()
    line = capsys.readouterr().err
    assert line.startswith(f"error: {name}='{value}': an environment variable (ValueError: ")
    assert line.count('\n') == 1


@pytest.mark.parametrize('error', [UserError('wrong'), FileNotFoundError(2, 'No such file', 'x')])
def test_a_process_that_ends_with_an_error_leaves_its_group(error, capsys):
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
    with pytest.raises(SystemExit) as stop, user_errors_as_one_line():
        raise error
    assert stop.value.code == 2 and not torch.distributed.is_initialized()
    assert capsys.readouterr().err in ('error: wrong\n', 'error: x: No such file\n')


@pytest.mark.parametrize('allocate', [lambda: torch.zeros(2**60), lambda: np.zeros(2**50)])
def test_what_does_not_fit_into_memory_is_a_line(allocate, capsys):
    with pytest.raises(SystemExit), user_errors_as_one_line():
        allocate()
    assert re.match(r'error: .*allocate.*; try .*\n$', capsys.readouterr().err)


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (torch.cuda.OutOfMemoryError('CUDA'), 'OutOfMemoryError: CUDA; try a smaller batch_size'),
        (MemoryError(), 'MemoryError; try a smaller batch_size'),
        (RuntimeError('could not create a primitive'), 'RuntimeError: could .*; try a smaller'),
        (BlockingIOError(11, 'x'), r'no process can be started; .* \(ulimit -u\)'),
        (SystemError('error return without exception set'), r'a library cannot be loaded'),
        (ImportError('x.so: failed to map segment'), r'a library cannot be .* \(ulimit -v\)'),
        (RuntimeError("Symlink loop from 'x'"), "Symlink loop from 'x'"),
    ],
)
def test_scarce_resources_are_a_line_that_blames_no_setting(error, line, capsys):
    with (
        pytest.raises(SystemExit),
        user_errors_as_one_line(),
        library_errors_as_one_line('model', 'fails at its first batch', 'another'),
    ):
        raise error
    assert re.fullmatch(f'error: {line}.*\n', capsys.readouterr().err)


@pytest.mark.parametrize(
    ('error', 'code', 'said'),
    [
        (KeyboardInterrupt(), 130, '\nstopped\n'),
        (Interrupted('3 of 9 images done'), 130, '\nstopped: 3 of 9 images done\n'),
        (BrokenPipeError(), 0, ''),
    ],
)
def test_ctrl_c_and_a_closed_pipe_end_quietly(error, code, said, capsys, monkeypatch):
    monkeypatch.setattr(errors, '_forget_output', lambda: None)
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise error
    assert caught.value.code == code
    assert capsys.readouterr() == ('', said)


TOOL = """
from mmseg_cct.cli.arguments import tool_parser
tool_parser('x').parse_args([])
BODY
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ('body', 'code', 'said'),
    [
        ('raise KeyboardInterrupt', 130, '\nstopped\n'),
        (r'print("\udce9" * 99)', 0, ''),  # written at the interpreter's end
        ('print("x" * 99, flush=True)', 0, ''),
        ('raise SystemExit(3)', 3, ''),
    ],
)
def test_so_do_imports_and_output_outside_of_it(body, code, said, project_root):
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, '-c', TOOL.replace('BODY', body)], cwd=project_root, stdout=writer,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writer)
    assert (process.returncode, process.stderr) == (code, said)


@pytest.mark.parametrize('name', ['stdout', 'stderr'])
def test_a_closed_stream_ends_nothing(name, monkeypatch):
    monkeypatch.setattr(sys, name, None)
    with user_errors_as_one_line():
        print('x')
        print('y', file=sys.stderr)
