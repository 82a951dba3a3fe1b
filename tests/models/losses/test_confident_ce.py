import pytest
import torch

from mmseg_cct.models.losses import ConfidentCrossEntropy, ConfidentMSE

N, C, H, W = 2, 4, 3, 5


def make_inputs():
    """Student logits, weak logits and validity."""
    torch.manual_seed(0)
    student, weak = 2 * torch.randn(2, N, C, H, W)
    return student, weak, torch.rand(N, 1, H, W) < 0.7


@pytest.mark.parametrize('threshold', [0.0, 0.6])
def test_a_loss_is_its_equation_at_the_confident_pixels_over_all_real_ones(threshold):
    student, weak, valid = make_inputs()
    q, p = student.softmax(1), weak.softmax(1)
    counts = valid[:, 0] & (p.amax(1) >= threshold)
    entropy = -q.log().gather(1, p.argmax(1, keepdim=True)).squeeze(1)
    for loss_class, values in (
        (ConfidentCrossEntropy, entropy),
        (ConfidentMSE, (q - p).square().sum(1)),
    ):
        loss = loss_class(1.0, threshold)
        expected = values[counts].sum() / valid.sum()
        torch.testing.assert_close(loss(student, loss.targets(weak, valid)), expected)


def test_a_confidence_near_the_threshold_is_not_rounded_to_16_bits():
    weak = torch.tensor([2.89, 0]).bfloat16().view(1, 2, 1, 1)  # 0.9474, in 16 bits 0.9492
    assert ConfidentCrossEntropy(threshold=0.95).targets(weak).weight == 0
