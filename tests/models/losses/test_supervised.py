import pytest
import torch
import torch.nn.functional as F
from mmseg.models.losses import CrossEntropyLoss

from mmseg_cct.models import BatchLovasz, BootstrappedCrossEntropy, MeanCrossEntropy

IGNORED = 255
N, C, H, W = 2, 4, 3, 5
WEIGHTS = [1.0, 2.0, 0.5, 3.0]


def make_inputs():
    torch.manual_seed(0)
    seg_logits = 2 * torch.randn(N, C, H, W, dtype=torch.float64)
    label = torch.randint(0, C, (N, H, W))
    label[torch.rand(N, H, W) < 0.3] = 255
    return seg_logits, label


@pytest.mark.parametrize(
    'options',
    [
        dict(loss_weight=0.5),
        dict(class_weight=WEIGHTS, reduction='sum'),
        dict(avg_non_ignore=False),
    ],
)
def test_values_and_gradients_are_mmsegs(options):
    logits, label = make_inputs()
    logits.requires_grad_()
    weight = torch.rand(N, H, W)
    for pixels in (None, weight):
        values = []
        for loss_class, extra in (
            (MeanCrossEntropy, {}),
            (CrossEntropyLoss, dict(avg_non_ignore=True)),
        ):
            loss = loss_class(**{**extra, **options})(
                logits, label, weight=pixels, ignore_index=255
            )
            values.append((loss, *torch.autograd.grad(loss, logits)))
        for ours, theirs in zip(*values):
            torch.testing.assert_close(ours, theirs)


def test_class_weights_weigh_the_mean():
    logits, label = make_inputs()
    loss = MeanCrossEntropy(class_weight=WEIGHTS)(logits, label, ignore_index=255)
    expected = F.cross_entropy(logits, label, logits.new_tensor(WEIGHTS), ignore_index=255)
    torch.testing.assert_close(loss, expected)


def test_it_is_one_minus_the_mean_iou_of_certain_predictions():
    generator = torch.Generator().manual_seed(0)
    label, predicted = torch.randint(3, (2, 2, 6, 7), generator=generator)
    label[0, :2] = IGNORED
    iou = []
    for index in range(3):
        inside, is_class = (predicted == index) & (label != IGNORED), label == index
        iou.append((inside & is_class).sum() / (inside | is_class).sum())
    certain = 200.0 * F.one_hot(predicted, 3).movedim(-1, 1)
    loss = BatchLovasz(loss_weight=0.5)(certain, label, ignore_index=IGNORED)
    assert loss.item() == pytest.approx(0.5 * (1 - torch.stack(iou).mean().item()), abs=1e-6)


def naive(seg_logits, label, threshold, class_weight):
    values = []
    for n, y, x in (label != 255).nonzero().tolist():
        true = label[n, y, x].item()
        probability = seg_logits[n, :, y, x].softmax(0)[true]
        if probability < threshold:
            values.append(-class_weight[true] * probability.log())
    return sum(values) / len(values)


@pytest.mark.parametrize('threshold', [0.4, 0.9, 1.1])
def test_abce_is_the_mean_over_the_pixels_below_a_threshold_that_rises_from_chance(threshold):
    seg_logits, label = make_inputs()
    loss = BootstrappedCrossEntropy(threshold, loss_weight=2.0, class_weight=WEIGHTS)
    relabeled = label.masked_fill(label == 255, 77)
    for loss.progress in (0.0, 0.3, 1.0):  # as a ramp does
        now = 1 / C + (threshold - 1 / C) * loss.progress
        expected = 2 * naive(seg_logits, label, now, WEIGHTS)
        torch.testing.assert_close(loss(seg_logits, label), expected)
        torch.testing.assert_close(loss(seg_logits, relabeled, ignore_index=77), expected)
