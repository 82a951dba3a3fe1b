import pytest
import torch

from mmseg_cct.models.layers.softmax import softmax


@pytest.mark.parametrize('compiling', [False, True])
@pytest.mark.parametrize('shift', [0.0, 1e4, -1e4])  # exp(1e4) is no float
def test_is_the_softmax_over_the_classes(monkeypatch, compiling, shift):
    monkeypatch.setattr(torch.compiler, 'is_compiling', lambda: compiling)
    torch.manual_seed(0)
    seg_logits = (3 * torch.randn(2, 5, 4, 7, dtype=torch.float64) + shift).requires_grad_()
    weight = torch.randn_like(seg_logits)
    torch.testing.assert_close(softmax(seg_logits), seg_logits.softmax(1))
    actual, expected = (
        torch.autograd.grad((p * weight).sum(), seg_logits)[0]
        for p in (softmax(seg_logits), seg_logits.softmax(1))
    )
    assert expected.abs().max() > 0
    torch.testing.assert_close(actual, expected)
