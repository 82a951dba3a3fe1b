import pickle
import shutil

import pytest
import torch

from mmseg_cct.models.layers import chunking
from mmseg_cct.models.layers.chunking import Chunking, split_positions


@pytest.mark.parametrize(
    ('num_positions', 'size', 'chunks'), [(12, 4, 3), (13, 4, 4), (3, 8, 1), (5, 1, 5), (8, 8, 1)]
)
def test_split_keeps_the_order_and_fills_up_with_zeros(num_positions, size, chunks):
    maps = torch.rand(2, 3, num_positions)
    split = split_positions(maps, size)
    assert len(split) == chunks
    assert all(chunk.shape == (2, 3, size) and chunk.is_contiguous() for chunk in split)
    joined = torch.cat(split, -1)
    assert torch.equal(joined[..., :num_positions], maps)
    assert (joined[..., num_positions:] == 0).all()


def projected(decoders, classes, num_positions=10):
    return torch.empty(1).expand(decoders, classes, num_positions)


each_size = pytest.mark.parametrize(
    ('decoders', 'classes', 'stride'),
    [(30, 21, 8), (120, 21, 8), (2, 150, 8), (30, 2, 1), (30, 150, 8), (31, 150, 8)],
)


@each_size
def test_shape_does_not_depend_on_the_number_of_positions(decoders, classes, stride):
    chunks = Chunking(memory_budget=10**6)
    shapes = {
        chunks.shape(projected(decoders, classes, num_positions), classes * stride**2, divisible)
        for num_positions in (1, 10, 100_000)
        for divisible in (False, True)
    }
    assert len(shapes) <= 2


@each_size
@pytest.mark.parametrize('divisible', [False, True])
@pytest.mark.parametrize('budget', [10**6, 10**7])
def test_shape_fills_the_budget(decoders, classes, stride, divisible, budget):
    logits = classes * stride**2
    together, size = Chunking(budget).shape(projected(decoders, classes), logits, divisible)
    assert size & (size - 1) == 0
    assert decoders % together == 0
    used = size * together * logits * 4
    assert used <= budget < 2 * used or size == 1
    if not divisible:
        assert together == decoders
    elif 1 < together < decoders:  # only to leave room for positions
        assert size >= chunking.MIN_POSITIONS


def test_shape_is_at_least_one_decoder_and_position():
    assert Chunking(memory_budget=1).shape(projected(30, 150), 150 * 32**2) == (30, 1)
    assert Chunking(memory_budget=1).shape(projected(30, 150), 150 * 32**2, divisible=True) == (
        1,
        1,
    )


def test_default_budget_is_finite():
    assert 1 <= Chunking().shape(projected(30, 21), 21 * 8**2)[1] < 10**5


@pytest.fixture
def no_compiler(monkeypatch):
    chunking._compiler_found.cache_clear()
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    logged = []
    monkeypatch.setattr(chunking, 'print_log', lambda message, **kwargs: logged.append(message))
    yield logged
    chunking._compiler_found.cache_clear()


def add_one(x):
    return x + 1


def subtract_one(x):
    return x - 1


def test_without_compiler_runs_uncompiled_and_says_so_in_one_line(no_compiler):
    for _ in range(3):
        assert Chunking(compile='auto').prepare(add_one, torch.device('cpu')) is add_one
    assert len(no_compiler) == 1
    assert 'no compiler' in no_compiler[0] and '\n' not in no_compiler[0]


def test_compile_false_asks_for_no_compiler(no_compiler):
    assert Chunking(compile=False).prepare(add_one, torch.device('cpu')) is add_one
    assert no_compiler == []


def test_compiles_a_function_once(monkeypatch):
    compiled = []

    def compile_(function, **kwargs):
        compiled.append(kwargs)
        return lambda x: function(x)

    monkeypatch.setattr(torch, 'compile', compile_)
    cpu = torch.device('cpu')
    first = Chunking(compile=True).prepare(subtract_one, cpu)
    assert Chunking(compile=True).prepare(subtract_one, cpu) is first
    assert first is not subtract_one and first(torch.ones(1)) == 0
    assert len(compiled) == 1 and compiled[0]['dynamic'] is False


def negate(x):
    if x.numel() == 5:
        raise ValueError('a real error')
    return -x


def test_runs_uncompiled_where_compiling_fails(monkeypatch):
    attempts, logged = [], []

    def compile_(function, **kwargs):
        def run(x):
            attempts.append(len(x))
            if len(x) > 2:  # as after more shapes than torch.compile keeps
                raise RuntimeError('recompile limit\nand a long explanation')
            return function(x)

        return run

    monkeypatch.setattr(torch, 'compile', compile_)
    monkeypatch.setattr(chunking, '_compiler_found', lambda device_type: True)
    monkeypatch.setattr(chunking, 'print_log', lambda message, **kwargs: logged.append(message))
    run = Chunking(compile='auto').prepare(negate, torch.device('cpu'))
    for length in (2, 3, 3, 2, 4):
        assert torch.equal(run(torch.ones(length)), -torch.ones(length))
    assert attempts == [2, 3, 2, 4]  # a shape that failed is not tried again
    failures = [line for line in logged if 'failed' in line]
    assert len(failures) == 1 and failures[0].endswith(': recompile limit')
    with pytest.raises(ValueError, match='a real error'):
        run(torch.ones(5))


def test_pickles():
    again = pickle.loads(pickle.dumps(Chunking(12345, False)))
    assert (again.memory_budget, again.compile) == (12345, False)
