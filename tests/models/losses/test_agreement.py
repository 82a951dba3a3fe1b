"""The share of auxiliary predictions that agree with the main one, as the bank logs it."""

import pytest
import torch
from banks import (
    OBJECT_MASKING,
    C,
    H,
    N,
    W,
    each_width,
    make_bank,
    make_batch,
    plain_predictions,
    run_loss,
)
from mmengine.structures import PixelData


@each_width
@pytest.mark.parametrize('memory_budget', [30_000, 2_000_000])
def test_the_logged_agreement_is_the_share_of_equal_classes(memory_budget, channels):
    # of all real pixels, also of those that a masked loss leaves out
    masked = dict(type='MSEConsistency', confidence_threshold=0.9)
    bank = make_bank(loss_consistency=masked, memory_budget=memory_budget, channels=channels)
    batch = make_batch()
    _, seg_logits, samples = batch
    for sample in samples:
        sample.valid_mask = PixelData(data=torch.rand(1, *seg_logits.shape[-2:]) < 0.3)
    valid = torch.stack([sample.valid_mask.data for sample in samples])
    predicted = torch.stack([q.argmax(1) for q in plain_predictions(bank, batch)])
    expected = (predicted == seg_logits.argmax(1)).float().mean(0)[valid.squeeze(1)].mean()
    losses = run_loss(bank, batch)
    assert losses['agreement'].item() == pytest.approx(expected.item())
    assert not losses['agreement'].requires_grad


def test_the_logged_agreement_is_that_of_the_chosen_positions(monkeypatch):
    bank, batch = make_bank(OBJECT_MASKING, position_fraction=0.5), make_batch()
    chosen = torch.arange(0, H * W, 2)
    monkeypatch.setattr(torch, 'randperm', lambda n, **_: chosen.new_tensor([*chosen, *chosen + 1]))
    losses = run_loss(bank, batch)
    predicted = torch.stack([q.argmax(1) for q in plain_predictions(bank, batch)])
    agreement = (predicted == batch[1].argmax(1)).float().mean(0)
    by_position = agreement.unflatten(1, (H, 8)).unflatten(3, (W, 8)).mean((2, 4)).flatten(1)
    assert losses['agreement'].item() == pytest.approx(by_position[:, chosen].mean().item())


def test_agreement_of_a_bank_with_itself_is_1():
    bank = make_bank(dict(mask=dict(type='ContextMasking', num_decoders=1)))
    bank.context_classes = ()  # all is foreground: nothing is masked
    z, _, samples = make_batch()
    seg_logits = bank((z,), torch.zeros(N, C, 8 * H, 8 * W), samples)[0]
    assert run_loss(bank, (z, seg_logits, samples))['agreement'] == 1
