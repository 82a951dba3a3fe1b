import pytest
import torch
from plain import conv_chain

from mmseg_cct.models.layers import stacked_decoders
from mmseg_cct.models.layers.stacked_decoders import (
    FLOAT16_GRADIENT,
    Chain,
    decode,
    decode_backward,
    decode_levels,
    softmax,
)
from mmseg_cct.models.layers.subpixel import from_subpixel_layout, num_levels

N, C, H, W = 2, 3, 3, 4


@pytest.mark.parametrize(('stride', 'final_activation'), [(1, True), (2, False), (8, True)])
def test_a_decoder_in_subpixel_layout_is_one_with_pixel_shuffle(stride, final_activation):
    torch.manual_seed(0)
    k, levels = 2, num_levels(stride)
    projected = torch.randn(k, C, N * H * W, dtype=torch.float64)
    weights = [torch.randn(k, 4 * C, C, dtype=torch.float64) for _ in range(levels)]
    biases = [torch.randn(k, 4 * C, dtype=torch.float64) for _ in range(levels)]
    decoded = decode(projected, Chain(weights, [b.unsqueeze(-1) for b in biases], final_activation))
    for d in range(k):
        actual = from_subpixel_layout(decoded[d], (N, H, W), stride)
        x = projected[d].view(C, N, H, W).transpose(0, 1)
        expected = conv_chain(
            x, [w[d, ..., None, None] for w in weights], [b[d] for b in biases], final_activation
        )
        torch.testing.assert_close(actual, expected)


def test_sums_of_gradients_do_not_overflow_float16():
    columns = 2**14  # whose sum would be 102400
    chain = Chain([torch.ones(1, 4, 1)], [torch.zeros(1, 4, 1)], final_activation=False)
    features = torch.full((1, 1, columns), 100.0, dtype=torch.float16)
    outputs = decode_levels(features, chain)
    grad = torch.full_like(outputs[-1], FLOAT16_GRADIENT)
    _, (weight,), (bias,) = decode_backward(outputs, chain, grad)
    assert (weight == 100 * FLOAT16_GRADIENT * columns).all()
    assert (bias == FLOAT16_GRADIENT * columns).all()


@pytest.mark.parametrize('shift', [0.0, 1e4])  # exp(1e4) is no float
def test_softmax_is_over_the_classes_when_compiled(monkeypatch, shift):
    monkeypatch.setattr(stacked_decoders, 'is_compiling', lambda: True)
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
