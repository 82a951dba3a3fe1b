"""The plain equations of each perturbation against the bank's, on equal draws."""

import copy

import plain
import pytest
import torch
from banks import MSE, PERTURBATIONS, make_bank, make_batch, run_loss

# Settings that leave nothing to chance: γ and the place of a crop are fixed.
FIXED = dict(
    guided_cutout=dict(side_ratio=1.0),
    context_masking={},
    object_masking={},
    feature_drop=dict(threshold_range=(0.8, 0.8)),
)


def bank_of(name, **settings):
    perturbation = dict(copy.deepcopy(PERTURBATIONS[name]), **settings)
    return make_bank({name: perturbation}, MSE, context_classes=('background',))


@pytest.mark.parametrize('name', FIXED)
def test_without_chance_the_loss_is_that_of_the_plain_equation(name):
    bank = bank_of(name, **FIXED[name])
    z, seg_logits, _ = batch = make_batch()
    predictions = plain.PlainBank(bank).predict(z, seg_logits, [0])
    expected = plain.consistency_mse(predictions, seg_logits.softmax(1))
    assert run_loss(bank, batch)['loss'].item() == pytest.approx(expected.item(), rel=1e-5)
    unchanged = plain.consistency_mse(plain.PlainBank(bank).decode([z] * 2), seg_logits.softmax(1))
    assert unchanged.item() != pytest.approx(expected.item(), rel=1e-3)


def test_dropout_drops_its_share_of_channels_and_noise_is_uniform_for_the_batch():
    torch.manual_seed(0)
    z = torch.ones(4, 2000, 3, 2)
    setting = bank_of('dropout', drop_ratio=0.2).perturbations['dropout']
    factors = plain.dropout(z, None, [0], None, setting)
    assert (factors == factors[..., :1, :1]).all()
    assert factors.unique().tolist() == pytest.approx([0, 1 / 0.8])
    assert (factors == 0).float().mean().item() == pytest.approx(0.2, abs=0.02)

    setting = bank_of('feature_noise', noise_range=0.3).perturbations['feature_noise']
    noise = plain.feature_noise(z, None, [0], None, setting) - 1
    assert (noise == noise[:1]).all()
    assert [noise.min().item(), noise.max().item()] == pytest.approx([-0.3, 0.3], abs=1e-3)
    assert noise.std().item() == pytest.approx(0.3 / 3**0.5, rel=0.02)
