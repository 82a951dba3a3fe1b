import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.models.losses import ConfidentMSE

N, C, H, W = 2, 4, 3, 5


def naive(student, weak, valid, threshold, normalizer):
    """Pixel by pixel."""
    total, count = 0.0, 0
    for n in range(N):
        for y in range(H):
            for x in range(W):
                p, q = (logits[n, :, y, x].softmax(0).tolist() for logits in (weak, student))
                if not valid[n, 0, y, x] or max(p) < threshold:
                    continue
                total += sum((a - b) ** 2 for a, b in zip(p, q))
                count += 1
    return total / (valid.sum().item() if normalizer == 'valid' else max(count, 1))


@pytest.mark.parametrize('normalizer', ['valid', 'counted'])
@pytest.mark.parametrize('threshold', [0.0, 0.6])
def test_it_is_the_naive_sum(normalizer, threshold):
    torch.manual_seed(0)
    student, weak = 2 * torch.randn(2, N, C, H, W)
    valid = torch.rand(N, 1, H, W) < 0.7
    loss = ConfidentMSE(1.0, threshold, normalizer)
    expected = naive(student, weak, valid, threshold, normalizer)
    actual = loss(student, loss.targets(weak, valid))
    assert actual.item() == pytest.approx(expected, rel=1e-5)


def test_it_is_bounded_and_0_for_equal_predictions():
    loss = MODELS.build(dict(type='ConfidentMSE'))
    sure = torch.zeros(1, C, 1, 1)
    sure[0, 0] = 100.0
    wrong = sure.flip(1).requires_grad_()
    assert loss(sure, loss.targets(sure)) == 0
    value = loss(wrong, loss.targets(sure))
    torch.testing.assert_close(value, torch.tensor(2.0))
    value.backward()
    assert wrong.grad.abs().max() < 1e-30  # where the cross-entropy pulls hardest
