import copy

import pytest
import torch
from banks import (
    MSE,
    OBJECT_MASKING,
    PERTURBATIONS,
    C,
    D,
    H,
    W,
    assert_same_results,
    loss_and_gradients,
    make_bank,
    make_batch,
    perturbed_features,
)
from mmengine.config import Config
from plain import PlainBank

from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.models.layers.chunking import Chunking


def test_forward_gives_every_prediction(num_images=3):
    bank = make_bank()
    z, seg_logits, samples = make_batch(num_images=num_images)
    torch.manual_seed(2)
    predictions = bank((z,), seg_logits, samples)
    assert predictions.shape == (bank.num_decoders, num_images, C, 8 * H, 8 * W)
    torch.manual_seed(2)
    plain = PlainBank(bank).decode(perturbed_features(bank, z, seg_logits))
    torch.testing.assert_close(predictions, torch.stack(plain), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(('channels', 'width'), [(None, C), (9, 9)])
def test_state_dict_keys(channels, width):
    # Golden: published checkpoints depend on them.
    bank = make_bank(stride=4, channels=channels)
    k = bank.num_decoders
    assert {name: tuple(value.shape) for name, value in bank.state_dict().items()} == {
        'proj': (k, width, D),
        'up.0.weight': (k, 4 * width, width),
        'up.0.bias': (k, 4 * width),
        'up.1.weight': (k, 4 * C, width),
        'up.1.bias': (k, 4 * C),
    }


def test_decoders_start_apart_and_their_convolutions_from_the_identity():
    bank = PerturbedDecoderBank(D, C, copy.deepcopy(OBJECT_MASKING), dict(MSE), channels=9)
    assert len(bank.proj.detach().unique(dim=0)) == bank.num_decoders
    *inner, last = bank.up
    for level in inner:
        assert torch.equal(level.weight[1], torch.eye(9).repeat_interleave(4, 0))
        assert (level.bias == 0).all()
    assert len(last.weight[0].unique(dim=0)) == C  # ICNR, from C random rows
    before = copy.deepcopy(bank.state_dict())
    bank.init_weights()
    assert all(torch.equal(value, before[name]) for name, value in bank.state_dict().items())


@pytest.mark.parametrize('context_classes', [('dog', 'cat'), (2, 1), ('dog', 1)])
def test_context_classes_by_name_or_id(context_classes):
    # not the first class: which one is context is the config's word
    bank = make_bank(OBJECT_MASKING, context_classes=context_classes)
    z, seg_logits, samples = make_batch()
    predictions = bank((z,), seg_logits, samples)
    winner = seg_logits.argmax(1)[:, ::8, ::8]
    kept = ((winner == 1) | (winner == 2)).unsqueeze(1)
    assert 0 < kept.float().mean() < 1
    expected = torch.stack(PlainBank(bank).decode(torch.stack([z * kept] * 2)))
    torch.testing.assert_close(predictions, expected)


def test_the_default_is_the_papers_setting(project_root):
    written = Config.fromfile(project_root / 'configs/_base_/models/cct.py').model.auxiliary_head
    for key in ('type', 'in_channels', 'num_classes'):
        written.pop(key)
    default, paper = PerturbedDecoderBank(4, 2), PerturbedDecoderBank(4, 2, **written)
    assert default.num_decoders == default.loss_consistency.loss_weight == 30
    assert repr(default.loss_consistency) == repr(paper.loss_consistency)
    assert repr(default.perturbations) == repr(paper.perturbations)
    for name, ours in default.perturbations.items():
        theirs = vars(paper.perturbations[name])
        assert {k: v for k, v in vars(ours).items() if k[0] != '_'}.items() <= theirs.items()


def test_order_of_the_perturbations_in_a_config_does_not_matter():
    # mmengine sorts the keys of a config that it dumps, and a checkpoint's rows are decoders
    names = list(make_bank().perturbations)
    assert names == list(PERTURBATIONS) != sorted(names)
    turned = dict(sorted({**PERTURBATIONS, 'a_second': PERTURBATIONS['dropout']}.items()))
    assert list(make_bank(turned).perturbations) == ['vat', 'a_second', *names[1:]]
    backwards = {name: PERTURBATIONS[name] for name in reversed(names)}
    assert_same_results(loss_and_gradients(make_bank(backwards)), loss_and_gradients(make_bank()))


@pytest.mark.parametrize('fraction', [1.0, 0.5])
@pytest.mark.parametrize('autocast', [False, True])
def test_decoders_that_are_projected_at_once_as_on_a_gpu_are_the_same(
    monkeypatch, fraction, autocast
):
    without_noise = copy.deepcopy(PERTURBATIONS)  # it draws several decoders from one seed there
    without_noise['feature_noise']['noise_range'] = 0.0
    bank = make_bank(without_noise, position_fraction=fraction)
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        one_by_one = loss_and_gradients(bank)
        monkeypatch.setattr(Chunking, 'copies', lambda *_: 4)
        assert_same_results(loss_and_gradients(bank), one_by_one, 2e-2 if autocast else 1e-5)
