"""The Lovász loss: 1 - IoU at certain predictions, all classes alike, 0 without labels."""

import pytest
import torch
from mmseg.models.losses import LovaszLoss

from mmseg_cct.models import BatchLovasz

IGNORED = 255


def certain(predicted, num_classes):
    """Logits of predictions without doubt."""
    return 200.0 * torch.nn.functional.one_hot(predicted, num_classes).permute(0, 3, 1, 2).float()


def test_it_is_one_minus_the_mean_iou_of_certain_predictions():
    generator = torch.Generator().manual_seed(0)
    label, predicted = torch.randint(3, (2, 2, 6, 7), generator=generator)
    label[0, :2] = IGNORED
    iou = []
    for index in range(3):
        inside, is_class = (predicted == index) & (label != IGNORED), label == index
        iou.append((inside & is_class).sum() / (inside | is_class).sum())
    loss = BatchLovasz(loss_weight=0.5)(certain(predicted, 3), label, ignore_index=IGNORED)
    assert loss.item() == pytest.approx(0.5 * (1 - torch.stack(iou).mean().item()), abs=1e-6)


def test_missing_a_rare_class_costs_what_missing_a_common_one_does():
    label = torch.zeros(1, 20, 20, dtype=torch.long)
    label[0, 0, :2] = 1  # half a per cent
    loss = BatchLovasz()(certain(torch.zeros_like(label), 2), label, ignore_index=IGNORED)
    assert loss.item() == pytest.approx((1 + 2 / 400) / 2, abs=1e-6)


def test_no_labelled_pixel_gives_zero():
    logits = torch.randn(2, 3, 4, 5, requires_grad=True)
    label = torch.full((2, 4, 5), IGNORED)
    theirs = LovaszLoss(reduction='none')(logits, label, ignore_index=IGNORED)
    assert theirs.mean().isnan()  # what mmengine would log
    loss = BatchLovasz()(logits, label, ignore_index=IGNORED)
    loss.backward()
    assert loss == 0 and not logits.grad.any()
