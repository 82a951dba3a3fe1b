import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmseg_cct.models.layers.modes import (
    eval_mode,
    frozen_running_statistics,
    precision_of_convolutions,
)


def test_eval_mode_is_undone_module_by_module():
    model = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Dropout(0.5))
    model[1].eval()  # frozen
    with pytest.raises(ZeroDivisionError), eval_mode(model.modules()):
        assert not any(module.training for module in model.modules())
        raise ZeroDivisionError
    assert model.training
    assert [layer.training for layer in model] == [True, False, True]


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


@pytest.mark.parametrize(
    ('device', 'convolutions', 'products', 'within'),
    [
        ('cuda', True, 'highest', 'high'),
        ('cuda', False, 'high', 'highest'),
        ('cuda', True, 'high', 'high'),
        ('cpu', True, 'highest', 'highest'),
    ],
)
def test_products_are_as_exact_as_convolutions_on_a_gpu(device, convolutions, products, within):
    def settings():
        return torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32

    try:
        torch.backends.cudnn.allow_tf32 = convolutions
        torch.set_float32_matmul_precision(products)
        before = settings()
        with pytest.raises(ZeroDivisionError), precision_of_convolutions(torch.device(device)):
            assert settings() == (within, within == 'high')
            raise ZeroDivisionError
        assert settings() == before
    finally:
        torch.backends.cudnn.allow_tf32 = True
        torch.set_float32_matmul_precision('highest')
