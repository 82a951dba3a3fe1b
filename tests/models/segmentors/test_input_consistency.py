import copy

import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData

from mmseg_cct.models.segmentors.input_consistency import adversarial_noise

N, SIZE = 3, (32, 32)


@pytest.mark.parametrize('padded', [False, True])
def test_consistency_is_the_squared_distance_of_the_softmaxes_without_padding(padded):
    (model, teacher), batch = tiny.taught(), tiny.pair_batch(N)
    valid = torch.ones(N, *SIZE, dtype=torch.bool)
    if padded:
        valid[0, 20:] = valid[0, :, 7:] = valid[1, :, 16:] = False
        for sample, mask in zip(batch['data_samples']['unlabeled'], valid):
            sample.valid_mask = PixelData(data=mask[None])
    student = copy.deepcopy(model)
    losses = model(**batch, mode='loss')
    p, q = (network(batch['inputs']['unlabeled']).softmax(1) for network in (teacher, student))
    expected = (p - q).square().mean(1)[valid].mean()
    torch.testing.assert_close(losses['aux.consistency'], expected.detach())
    torch.testing.assert_close(losses['aux.loss'], 30 * expected)


def fcn_head(**kwargs):
    return dict(
        type='FCNHead', in_channels=6, channels=4, num_classes=3, num_convs=1,
        norm_cfg=dict(type='BN'), in_index=-1, **kwargs,
    )  # fmt: skip


def test_unlabelled_images_stay_out_of_the_heads_statistics():
    model, teacher = (tiny.mean_teacher(seed, decode_head=fcn_head()) for seed in (0, 9))
    model.set_teacher(teacher.requires_grad_(False).eval())
    model(**tiny.pair_batch(N), mode='loss')
    assert model.decode_head.convs[0].bn.num_batches_tracked == 1


def make_vat(**kwargs):
    consistency = dict(type='KLConsistency', loss_weight=30.0)
    vat = dict(type='InputVATSegmentor', auxiliary_head=None, loss_consistency=consistency)
    return tiny.build(**vat, **kwargs)


def test_the_norm_of_every_images_noise_is_epsilon_and_that_of_its_probe_xi():
    model, images, seen = make_vat().eval(), torch.randn(N, 3, *SIZE), []
    images[1] *= 1e-3
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach() - images))
    with torch.no_grad():
        p = model(images).softmax(1)
    noise = adversarial_noise(model, images, p, epsilon=2.5, xi=0.25)
    _, probe = seen  # after the clean pass
    for change, length in ((noise, 2.5), (probe, 0.25)):
        torch.testing.assert_close(change.flatten(1).norm(dim=1), torch.full((N,), length))


def test_it_finds_the_worst_direction_of_a_linear_model():
    """Two classes, logits ±a·x: KL changes along a alone, so r_adv is ±εa/‖a‖."""
    torch.manual_seed(0)
    a = torch.randn(3, *SIZE)

    def predict(images):
        score = (images * a).sum((1, 2, 3)).view(-1, 1, 1, 1)
        return torch.cat([score, -score], 1) * 1e-3

    images = torch.randn(N, 3, *SIZE)
    noise = adversarial_noise(predict, images, predict(images).softmax(1), epsilon=2.0, xi=1.0)
    cosines = F.cosine_similarity(noise.flatten(1), a.flatten().expand(N, -1))
    torch.testing.assert_close(cosines.abs(), torch.ones(N), atol=1e-3, rtol=0)


def test_the_loss_trains_the_noisy_pass_alone():
    """The gradient is that of KL to constants p, at a constant r_adv."""
    model, batch = make_vat(), tiny.pair_batch(N)
    images, twin = batch['inputs']['unlabeled'], copy.deepcopy(model)
    torch.manual_seed(7)
    model(**batch, mode='loss')['aux.loss'].backward()

    torch.manual_seed(7)
    p = twin(images).detach().softmax(1)
    noise = adversarial_noise(twin, images, p, twin.epsilon, twin.xi)
    kl = F.kl_div(twin(images + noise).log_softmax(1), p, reduction='none').mean()
    (30 * kl).backward()
    for (name, actual), expected in zip(model.named_parameters(), twin.parameters()):
        torch.testing.assert_close(actual.grad, expected.grad, atol=1e-5, rtol=1e-3, msg=name)


def test_the_search_is_in_float32_under_mixed_precision():
    model, batch = make_vat(), tiny.pair_batch(N)
    seen = []
    model.decode_head.upsample.register_forward_hook(
        lambda module, inputs, output: seen.append(output.dtype)
    )
    with torch.autocast('cpu', torch.bfloat16):
        losses = model(**batch, mode='loss')
    # labelled, clean, search, noisy
    assert seen == [torch.bfloat16, torch.float32, torch.float32, torch.bfloat16]
    losses['aux.loss'].backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_dropout_and_the_heads_statistics_leave_the_target_clean(monkeypatch):
    model, batch = make_vat(decode_head=fcn_head(dropout_ratio=0.5)), tiny.pair_batch(N)
    seen = []
    model.decode_head.dropout.register_forward_hook(
        lambda module, inputs, output: seen.append(not torch.equal(inputs[0], output))
    )
    model(**batch, mode='loss')
    assert seen == [True, False, False, True]  # labelled, clean, search, noisy
    assert model.decode_head.convs[0].bn.num_batches_tracked == 1  # the labelled batch
    assert model.backbone.bn1.num_batches_tracked == 2  # and the clean unlabelled one
    assert all(module.training for module in model.modules())
