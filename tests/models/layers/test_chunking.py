import itertools
import sys

import pytest
import torch

from mmseg_cct.models.layers import chunking
from mmseg_cct.models.layers.chunking import Chunking, split_positions

CPU = torch.device('cpu')


def test_split_keeps_the_order_and_fills_up_with_zeros():
    for num_positions, size, chunks in ((13, 4, 4), (3, 8, 1), (5, 1, 5)):
        maps = torch.rand(2, 3, num_positions)
        split = split_positions(maps, size)
        assert len(split) == chunks and all(chunk.is_contiguous() for chunk in split)
        padded = torch.cat([maps, torch.zeros(2, 3, chunks * size - num_positions)], -1)
        assert torch.equal(torch.cat(split, -1), padded)


def projected(decoders, classes, num_positions=10**6):
    return torch.empty(1).expand(decoders, classes, num_positions)


def test_a_single_chunk_is_no_larger_than_its_positions_need():
    chunks = Chunking(memory_budget=512 * 2**20)
    for num_positions, size in ((1, 1), (16, 16), (17, 32)):
        assert chunks.shape(projected(4, 2, num_positions), 2 * 8**2) == (4, size)


@pytest.mark.parametrize(
    ('decoders', 'classes', 'stride'), [(30, 21, 8), (2, 150, 8), (30, 2, 1), (31, 21, 8)]
)
@pytest.mark.parametrize('divisible', [False, True])
def test_the_shape_of_several_chunks_fills_the_budget(decoders, classes, stride, divisible):
    logits = classes * stride**2
    for budget in (1, 10**6, 10**7):
        ((together, size),) = {
            Chunking(budget).shape(projected(decoders, classes, num_positions), logits, divisible)
            for num_positions in (10**5, 10**6)
        }
        assert size & (size - 1) == 0
        assert decoders % together == 0
        used = size * together * logits * 4
        assert used <= budget < 2 * used or size == 1
        if not divisible:
            assert together == decoders
        elif 1 < together < decoders:  # only to leave room for positions
            assert size >= chunking.MIN_POSITIONS


def add_one(x):
    return x + 1


def test_compiles_a_function_once_for_each_shape_and_type(monkeypatch):
    compiled = []

    def compile_(function, dynamic, fullgraph):
        assert not dynamic
        compiled.append(function)
        return function

    monkeypatch.setattr(torch, 'compile', compile_)
    first = Chunking(compile=True).prepare(add_one, CPU)
    assert Chunking(compile=True).prepare(add_one, CPU) is first and first is not add_one
    for _ in range(2):
        for x in (torch.ones(2), torch.ones(3), torch.ones(2).double()):
            assert torch.equal(first(x), x + 1)
    # torch compiles a code object at most eight times
    assert len(compiled) == len({id(function.__code__) for function in compiled}) == 3


def negate(x):
    if x.numel() == 5:
        raise ValueError('a real error')
    return -x


def test_runs_uncompiled_where_compiling_fails(monkeypatch, messages):
    attempts = []

    def compile_(function, **kwargs):
        def run(x):
            attempts.append(len(x))
            if len(x) == 6:
                raise torch.cuda.OutOfMemoryError('CUDA out of memory')
            if len(x) > 2:  # as after more shapes than torch.compile keeps
                raise RuntimeError('recompile limit\nand a long explanation')
            return function(x)

        return run

    monkeypatch.setattr(torch, 'compile', compile_)
    monkeypatch.setattr(chunking, 'triton_found', lambda: True)
    run = Chunking(compile='auto').prepare(negate, torch.device('cuda'))
    for length in (2, 3, 3, 2, 4):
        assert torch.equal(run(torch.ones(length)), -torch.ones(length))
    assert attempts == [2, 3, 2, 4]  # a shape that failed is not tried again
    failures = [line for line in messages if 'failed' in line]
    assert len(failures) == 1 and '\n' not in failures[0]
    with pytest.raises(ValueError, match='a real error'):
        run(torch.ones(5))
    with pytest.raises(torch.cuda.OutOfMemoryError):  # no failure of the compiler
        run(torch.ones(6))


def test_chunks_of_the_native_kernel_are_whole_tiles_with_little_padding(monkeypatch):
    for threads, num_positions in itertools.product((1, 4), (1, 31, 32, 3200, 100_000)):
        monkeypatch.setattr(torch, 'get_num_threads', lambda threads=threads: threads)
        features = projected(30, 21, num_positions)
        size = Chunking(8 * 2**20).native_size(features, 21 * 64, tile=32)
        assert size % 32 == 0
        assert size * 21 * 64 * 4 <= 8 * 2**20 + 32 * 21 * 64 * 4
        chunks = -(-num_positions // size)
        assert chunks * (size - 32) < num_positions
        # a thread has a tile at least, whatever the budget
        assert Chunking(1).native_size(features, 21 * 64, tile=32) <= 32 * threads


def test_auto_compiles_on_a_gpu_with_triton_alone(messages, monkeypatch):
    chunking._log_once.cache_clear()
    monkeypatch.setattr(chunking, '_compiled', lambda function, fall_back: 'compiled')
    for _ in range(2):
        assert Chunking(compile='auto').prepare(add_one, CPU) is add_one
    assert len(messages) == 1 and 'compile=True' in messages[0] and '\n' not in messages[0]
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda: (8, 0))
    for triton, expected in ((None, add_one), (sys, 'compiled')):
        chunking.triton_found.cache_clear()
        monkeypatch.setitem(sys.modules, 'triton', triton)
        assert Chunking(compile='auto').prepare(add_one, torch.device('cuda')) == expected
    chunking.triton_found.cache_clear()
    assert Chunking(compile=False).prepare(add_one, torch.device('cuda')) is add_one
