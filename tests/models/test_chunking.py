import pickle
import shutil

import pytest
import torch

from mmseg_cct.models import chunking
from mmseg_cct.models.chunking import Chunking, join_positions, split_positions


@pytest.mark.parametrize(('num_positions', 'size', 'chunks'), [(12, 4, 3), (13, 4, 4), (3, 8, 1),
                                                               (5, 1, 5), (8, 8, 1)])
def test_split_and_join_round_trip(num_positions, size, chunks):
    maps = torch.rand(2, 3, num_positions)
    split = split_positions(maps, size)
    assert split.shape == (chunks, 2, 3, size) and split.is_contiguous()
    assert torch.equal(join_positions(split, num_positions), maps)
    assert (split[-1, ..., num_positions - (chunks - 1) * size:] == 0).all()  # the padding
    assert torch.equal(split[0, ..., :1], maps[..., :1])


def test_size_depends_on_decoders_classes_stride_and_budget_alone():
    small, large = torch.empty(1, 21, 10), torch.empty(30, 21, 100_000)
    chunks = Chunking(memory_budget=10**6)
    assert chunks.size(small, 30, 21, 8) == chunks.size(large, 30, 21, 8)
    for decoders, classes, stride in ((30, 21, 8), (120, 21, 8), (2, 150, 8), (30, 2, 1)):
        size = chunks.size(small, decoders, classes, stride)
        assert size & (size - 1) == 0
        logits = size * decoders * classes * stride**2 * 4
        assert logits <= 10**6 < 2 * logits


def test_size_is_at_least_one_position():
    assert Chunking(memory_budget=1).size(torch.empty(1), 30, 150, 32) == 1


def test_default_budget_is_finite():
    assert 1 <= Chunking().size(torch.empty(1), 30, 21, 8) < 10**5


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


def test_pickles():
    again = pickle.loads(pickle.dumps(Chunking(12345, False)))
    assert (again.memory_budget, again.compile) == (12345, False)
