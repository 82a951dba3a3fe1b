import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmseg_cct.models.layers.modes import (
    all_but_batch_norm,
    eval_mode,
    frozen_running_statistics,
    recorded_input,
)


def make_model():
    return nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Dropout(0.5))


def test_eval_mode_is_undone_module_by_module():
    model = make_model()
    model[3].eval()  # frozen
    with pytest.raises(ZeroDivisionError), eval_mode(model.modules()):
        assert not any(module.training for module in model.modules())
        raise ZeroDivisionError
    assert model.training
    assert [layer.training for layer in model] == [True, True, True, False]


def test_without_batch_norm_dropout_alone_is_off():
    model = make_model()
    x = torch.randn(4, 2, 3, 3)
    with eval_mode(all_but_batch_norm(model)):
        actual = model(x)
    torch.testing.assert_close(actual, F.batch_norm(model[0](x), None, None, training=True))


def test_frozen_statistics_normalise_by_the_batch_and_are_restored():
    norm = nn.BatchNorm2d(2)
    model = nn.Sequential(norm, nn.BatchNorm2d(2, track_running_stats=False))
    x = torch.randn(4, 2, 3, 3)
    with pytest.raises(ZeroDivisionError), frozen_running_statistics(model):
        torch.testing.assert_close(norm(x), F.batch_norm(x, None, None, training=True))
        assert norm.num_batches_tracked == 0
        assert torch.equal(norm.running_mean, torch.zeros(2))
        raise ZeroDivisionError
    assert [layer.track_running_stats for layer in model] == [True, False]
    norm.eval()
    with frozen_running_statistics(model):
        torch.testing.assert_close(norm(x), x / (1 + norm.eps) ** 0.5)


def test_an_input_is_recorded_with_its_graph_and_only_within():
    first, second = nn.Conv2d(2, 3, 1), nn.Conv2d(3, 1, 1)
    x = torch.randn(1, 2, 4, 4)
    with recorded_input(second) as inputs:
        second(first(x))
    second(first(x))
    (recorded,) = inputs
    torch.testing.assert_close(recorded, first(x))
    recorded.sum().backward()
    assert first.weight.grad is not None and second.weight.grad is None
