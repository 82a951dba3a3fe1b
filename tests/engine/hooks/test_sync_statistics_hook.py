"""The running statistics of two ranks."""

from types import SimpleNamespace

import torch
from ranks import on_two_ranks, without_cuda
from torch import nn

from mmseg_cct.engine.hooks import SyncStatisticsHook


def after_an_iteration(rank):
    layers = dict(own=nn.BatchNorm1d(3), none=nn.BatchNorm1d(3, track_running_stats=False))
    model = nn.ModuleDict(layers)
    images = torch.rand(8, 3, generator=torch.Generator().manual_seed(rank))
    for layer in model.values():
        layer(images)
    own = model['own'].running_mean.clone(), model['own'].running_var.clone()
    hook, runner = SyncStatisticsHook(), SimpleNamespace(model=model)
    hook.before_train(runner)
    hook.after_train_iter(runner, 0)
    return own, (model['own'].running_mean, model['own'].running_var)


@without_cuda
def test_statistics_become_the_mean_of_the_ranks(tmp_path):
    (first, synced), (second, also) = on_two_ranks(after_an_iteration, tmp_path)
    for one, other, result, same in zip(first, second, synced, also):
        assert not torch.equal(one, other)
        torch.testing.assert_close(result, (one + other) / 2)
        assert torch.equal(result, same)


def test_one_process_keeps_its_own():
    own, kept = after_an_iteration(0)
    assert all(map(torch.equal, own, kept))
