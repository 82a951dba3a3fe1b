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
