"""The main decoder learns masks that are given, mixed like the images."""

import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData

from mmseg_cct.errors import UserError

N, SIZE = 2, (32, 32)


class LowerHalf(torch.nn.Module):
    """Mixes the lower half of the images."""

    def forward(self, images):
        boxes = torch.zeros(len(images), 1, *images.shape[-2:], dtype=torch.bool)
        boxes[:, :, 16:] = True
        return boxes


@pytest.fixture
def model():
    model = tiny.build(
        type='SelfTrainingSegmentor',
        auxiliary_head=None,
        loss_strong=dict(type='ConfidentCrossEntropy', loss_weight=2.0),
    )
    model.cutmix = LowerHalf()
    return model


@pytest.fixture
def batch(model):
    names = ['labeled', 'unlabeled', 'unlabeled_strong_0']
    return model.data_preprocessor(tiny.raw_batch(names, N, SIZE), training=True)


def test_loss_is_the_cross_entropy_to_the_mixed_masks(model, batch):
    inputs, samples = batch['inputs'], batch['data_samples']
    masks = torch.randint(model.num_classes, (N, 1, *SIZE))
    masks[:, :, :5] = 255
    valid = torch.ones(N, 1, *SIZE, dtype=torch.bool)
    valid[:, :, :, 30:] = False
    for sample, mask, is_real in zip(samples['unlabeled'], masks, valid):
        sample.pseudo_sem_seg, sample.valid_mask = PixelData(data=mask), PixelData(data=is_real)
    losses = model.loss(inputs, samples)

    images = inputs['unlabeled_strong_0'].clone()
    images[:, :, 16:] = inputs['unlabeled_strong_0'].flip(0)[:, :, 16:]
    masks[:, :, 16:] = masks.flip(0)[:, :, 16:].clone()
    seg_logits = model.resized(model.main_logits(model.extract_feat(images)), SIZE)
    target = torch.where(valid, masks, 255).squeeze(1)
    expected = F.cross_entropy(seg_logits, target, ignore_index=255, reduction='sum') / valid.sum()
    assert losses['strong.unweighted'] == pytest.approx(expected.item(), rel=1e-5)
    assert losses['strong.loss'].item() == pytest.approx(2 * expected.item(), rel=1e-5)
    losses['strong.loss'].backward()
    assert any(p.grad is not None and p.grad.any() for p in model.decode_head.parameters())


def test_masks_are_needed(model, batch):
    with pytest.raises(UserError, match='weak_masks'):
        model.loss(batch['inputs'], batch['data_samples'])
