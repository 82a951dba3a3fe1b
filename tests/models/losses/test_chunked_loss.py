from functools import partial
from unittest import mock

import pytest
import torch
from banks import (
    ALL_TERMS,
    MASKED,
    MSE,
    OBJECT_MASKING,
    PERTURBATIONS,
    C,
    D,
    H,
    N,
    W,
    assert_close_relative,
    assert_same_results,
    gradients,
    loss_and_gradients,
    make_bank,
    make_batch,
    needs_compiler,
    perturbed_features,
    plain_predictions,
    run_loss,
    with_masks,
)
from dispatch import DispatchCounter
from plain import PlainBank, consistency_js, consistency_kl, consistency_mse, pairwise, weak_ce

from mmseg_cct.models.layers import chunking

KINDS = dict(
    MSEConsistency=consistency_mse, KLConsistency=consistency_kl, JSConsistency=consistency_js
)


def consistency_of(name, threshold=None):
    return dict(type=f'{name}Consistency', loss_weight=3.0, confidence_threshold=threshold)


@pytest.mark.parametrize(
    'settings',
    [
        *(dict(channels=channels) for channels in (None, 4, 9)),
        dict(memory_budget=500_000),  # chunks of 32 of 48 positions, so one is filled up
        dict(memory_budget=100_000, loss_pairwise=None),  # and of some of the decoders
        dict(stride=1),
        dict(stride=4, channels=9, final_activation=True, loss_consistency=consistency_of('KL')),
        # the main prediction is kept in float32
        *(
            dict(loss_consistency=consistency_of(distance_name, 0.55), dtype=torch.float64)
            for distance_name in ('MSE', 'KL', 'JS')
        ),
        *(
            pytest.param(dict(options, compile='auto'), marks=needs_compiler)
            for options in (
                dict(loss_pairwise=None, memory_budget=2_000_000),
                dict(loss_pairwise=None, channels=7, stride=4, final_activation=True),
                dict(loss_consistency=consistency_of('JS')),  # which the kernel lacks
            )
        ),
    ],
    ids=str,
)
def test_loss_and_gradients_are_those_of_the_plain_decoders(settings):
    bank = make_bank(**{**ALL_TERMS, **settings})
    tolerance = 1e-7 if bank.proj.dtype == torch.float64 else 1e-5
    z, seg_logits, samples = batch = make_batch(bank.proj.dtype, stride=bank.stride)
    loss, (grad, *grads) = loss_and_gradients(bank, batch)

    plain = PlainBank(bank)
    torch.manual_seed(2)
    predictions = plain.decode(perturbed_features(bank, z, seg_logits))
    p, consistency = seg_logits.softmax(1), bank.loss_consistency
    distance = KINDS[type(consistency).__name__](
        predictions, p, p.amax(1) > (consistency.confidence_threshold or 0)
    )
    labels = torch.cat([sample.pseudo_sem_seg.data for sample in samples])
    expected_loss = consistency.loss_weight * distance
    expected_loss += 0.4 * weak_ce(predictions, labels)
    if bank.loss_pairwise is not None:
        expected_loss += 2 * pairwise(predictions)
    expected_loss.backward()
    assert loss.item() == pytest.approx(expected_loss.item(), rel=tolerance)
    assert_close_relative(grad, z.grad, tolerance)
    expected = {'proj': [d.projection.grad[..., 0, 0] for d in plain.decoders]}
    for level in range(len(bank.up)):
        expected[f'up.{level}.weight'] = [d.weights[level].grad[..., 0, 0] for d in plain.decoders]
        expected[f'up.{level}.bias'] = [d.biases[level].grad for d in plain.decoders]
    names = [name for name, _ in bank.named_parameters()]
    assert sorted(names) == sorted(expected)
    for name, actual in zip(names, grads):
        assert_close_relative(actual, torch.stack(expected[name]), tolerance)


# the noise of F-Noise is drawn in the type of the features
WITHOUT_NOISE = {n: c for n, c in PERTURBATIONS.items() if n != 'feature_noise'}


@pytest.mark.parametrize(
    ('settings', 'features'),
    [
        (dict(loss_consistency=dict(type='JSConsistency'), **ALL_TERMS), torch.float32),
        (dict(perturbations=WITHOUT_NOISE), torch.bfloat16),  # as a neck hands them over
    ],
)
def test_bfloat16_autocast_gives_nearly_the_same(settings, features):
    z, *targets = make_batch()
    z = z.detach().to(features)
    exact = make_bank(**{**settings, 'compile': False})
    expected = loss_and_gradients(exact, (z.float().requires_grad_(), *targets))
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss, grads = loss_and_gradients(make_bank(**settings), (z.requires_grad_(), *targets))
    assert loss.dtype == torch.float32
    assert [g.dtype for g in grads] == [features, *[torch.float32] * (len(grads) - 1)]
    assert loss.item() == pytest.approx(expected[0].item(), rel=2e-2)
    # 2 % of the gradient as a whole; single tensors may be off further where a ReLU flips
    differences = [(a.float() - e).flatten() for a, e in zip(grads, expected[1])]
    assert all(d.norm() <= 5e-2 * e.norm() for d, e in zip(differences, expected[1]))
    whole = torch.cat([e.flatten() for e in expected[1]])
    assert torch.cat(differences).norm() <= 2e-2 * whole.norm()


@pytest.mark.parametrize(
    ('loss_weight', 'threshold'),
    [(30.0, None), (0.01, None), (30.0, 1.0)],
    ids=['full weight', 'start of a ramp', 'no confident pixel'],
)
def test_float16_holds_the_gradients_of_a_whole_batch_in_one_chunk(loss_weight, threshold):
    """They are computed before a loss scaler could see them."""
    batch = make_batch(num_images=8)
    bank = make_bank(
        dict(dropout=PERTURBATIONS['dropout']),
        dict(MSE, loss_weight=loss_weight, confidence_threshold=threshold),
        loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4 if threshold else 0.0),
        memory_budget=512 * 2**20,
    )

    def scaled_gradients():
        return torch.autograd.grad(2**16 * run_loss(bank, batch)['loss'], list(bank.parameters()))

    expected = scaled_gradients()
    with torch.autocast('cpu', dtype=torch.float16):
        actual = scaled_gradients()
    for a, e in zip(actual, expected):
        assert_close_relative(a, e, 3e-3)


def test_what_is_logged_changes_no_loss_and_no_gradient():
    banks = [make_bank(log_terms=log, position_fraction=0.5, **ALL_TERMS) for log in (False, True)]
    (loss, grads), (logging_loss, logging_grads) = map(loss_and_gradients, banks)
    assert loss == logging_loss and all(map(torch.equal, grads, logging_grads))
    assert run_loss(banks[0]).keys() == {'loss', 'consistency', 'weak_ce', 'pairwise'}


@pytest.mark.parametrize('weights', [(0.0, 0.0), (0.0, 1.0)])
def test_a_term_of_weight_0_adds_nothing(weights):
    # where a ramp starts
    bank = make_bank(
        OBJECT_MASKING,
        dict(type='MSEConsistency', loss_weight=weights[0]),
        loss_weak=dict(type='WeakCrossEntropy', loss_weight=weights[1]),
    )
    loss, grads = loss_and_gradients(bank)
    torch.testing.assert_close(loss, weights[1] * run_loss(bank)['weak_ce'], check_dtype=False)
    assert all((g.abs().max() > 0) == (weights[1] > 0) for g in grads)


def test_two_losses_in_one_backward_pass_add_up():
    bank = make_bank()
    z, *targets = make_batch()
    single = [loss_and_gradients(bank, (z, *targets), seed)[1] for seed in (2, 3)]
    losses = [run_loss(bank, (z, *targets), seed)['loss'] for seed in (2, 3)]
    total = losses[0] + 0.5 * losses[1]
    for actual, a, b in zip(gradients(total, z, [bank]), *single):
        torch.testing.assert_close(actual, a + 0.5 * b)


def test_what_would_need_the_gradients_again_is_an_error():
    loss = run_loss(make_bank())['loss']
    with pytest.raises(RuntimeError, match='cannot be differentiated twice'):
        loss.backward(create_graph=True)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=r'backward\(\) was called a second time on the loss of'):
        loss.backward()


def test_the_mean_over_all_parts_of_the_positions_is_the_whole(monkeypatch):
    """So a part is an unbiased estimate, also where few pixels count: some parts have none."""
    settings = dict(
        perturbations={n: PERTURBATIONS[n] for n in ('object_masking', 'context_masking')},
        loss_consistency=dict(MSE, confidence_threshold=0.8),
        loss_weak=ALL_TERMS['loss_weak'],
    )
    z, _, samples = batch = make_batch()
    for sample in samples:
        sample.pseudo_sem_seg.data[:, 16:] = 255
    expected = run_loss(make_bank(**settings), batch)
    bank, results = make_bank(position_fraction=0.25, **settings), []
    order = torch.randperm(H * W, generator=torch.Generator().manual_seed(0))
    for part in range(4):
        chosen = order.roll(part * H * W // 4)
        monkeypatch.setattr(torch, 'randperm', lambda n, chosen=chosen, **_: chosen)
        losses = run_loss(bank, batch)
        (gradient,) = torch.autograd.grad(losses['loss'], z)
        # the same positions in every image
        assert {*gradient.flatten(2).abs().sum((0, 1)).nonzero().flatten().tolist()} <= {
            *chosen[: H * W // 4].tolist()
        }
        results.append((losses, gradient))
    for name, value in expected.items():
        mean = torch.stack([losses[name] for losses, _ in results]).mean()
        torch.testing.assert_close(mean, value)
    (whole,) = torch.autograd.grad(expected['loss'], z)
    assert_close_relative(sum(gradient for _, gradient in results) / 4, whole, 1e-5)
    assert 0 < expected['pixels_consistency'] < 0.3


def test_no_tensor_grows_with_decoders_times_pixels():
    num_images, decoders_each, channels = 6, 4, 8 * C
    num_decoders = decoders_each * len(PERTURBATIONS)
    perturbations = {
        n: dict(options, num_decoders=decoders_each) for n, options in PERTURBATIONS.items()
    }
    # about 32 chunks, which all take all decoders, however few the positions
    budget = num_decoders * C * 64 * num_images * H * W // 32
    bank = make_bank(perturbations, memory_budget=4 * budget, channels=channels)
    batch = make_batch(num_images=num_images)
    with mock.patch.object(chunking, 'MIN_POSITIONS', 1), DispatchCounter() as counter:
        run_loss(bank, batch)['loss'].backward()
    main_prediction = num_images * C * 64 * H * W
    projected = num_decoders * num_images * channels * H * W
    perturbed = decoders_each * num_images * D * H * W  # the copies of z of one perturbation
    parameters = num_decoders * 4 * channels**2
    # a view of the main prediction counts as well
    assert counter.largest <= max(main_prediction, budget, projected, perturbed, parameters)
    assert counter.largest < num_decoders * main_prediction * (channels / C) / 20


@pytest.mark.slow
@pytest.mark.parametrize('device', ['cpu', pytest.param('cuda', marks=pytest.mark.gpu)])
def test_compiled_results_are_the_eager_ones(compiling, monkeypatch, device):
    if device == 'cpu':  # without the C++ of torch's own compiler, which takes half a minute
        monkeypatch.setattr(torch, 'compile', partial(torch.compile, backend='aot_eager'))
    stats = torch._dynamo.utils.counters['stats']
    stats.clear()
    perturbations = {name: PERTURBATIONS[name] for name in ('vat', 'dropout')}
    results = []
    for compile in (False, True):
        settings = dict(compile=compile, stride=2, memory_budget=10_000)
        bank = make_bank(perturbations, **settings).to(device)
        for num_images in (2, 3):
            z, seg_logits, samples = make_batch(stride=2, num_images=num_images)
            batch = z.detach().to(device).requires_grad_(), seg_logits.to(device), samples
            results.append(loss_and_gradients(bank, batch))
    for eager, compiled in zip(results[:2], results[2:]):
        assert_same_results(compiled, eager)
    # one graph for the losses and one for I-VAT, at both batch sizes
    assert stats['unique_graphs'] == 2, stats


@pytest.mark.parametrize('compile', [False, 'auto'])
def test_a_target_without_a_number_gives_no_loss_of_zero(compile):
    """No pixel of it is confident, so all weigh 0."""
    bank = make_bank(compile=compile, loss_consistency=MASKED)
    z, seg_logits, samples = make_batch()
    assert run_loss(bank, (z, seg_logits * torch.nan, samples))['loss'].isnan()


@pytest.mark.parametrize(
    ('compile', 'loss_pairwise'),
    [(False, ALL_TERMS['loss_pairwise']), pytest.param('auto', None, marks=needs_compiler)],
)
def test_what_is_logged_is_unweighted_and_of_the_real_pixels(compile, loss_pairwise):
    terms = {**ALL_TERMS, 'loss_pairwise': loss_pairwise}
    bank = make_bank(loss_consistency=MASKED, compile=compile, **terms)
    z, seg_logits, samples = batch = make_batch()
    seg_logits.requires_grad_()
    valid = torch.zeros(N, 1, 8 * H, 8 * W, dtype=torch.bool)
    valid[0, :, : 3 * 8 + 5, : 2 * 8] = valid[1, :, : 8 * H, : 3 * 8] = True
    with_masks(samples, valid)
    losses = run_loss(bank, batch)
    assert [key for key, value in losses.items() if value.requires_grad] == ['loss']
    pairwise = 2 * losses.pop('pairwise') if loss_pairwise else 0
    total = 30 * losses['consistency'] + 0.4 * losses['weak_ce'] + pairwise
    torch.testing.assert_close(losses['loss'].detach(), total, check_dtype=False)
    losses['loss'].backward()
    assert seg_logits.grad is None  # the target is a constant
    # positions of 8×8 pixels, all of them padding; I-VAT's noise reaches every one
    assert (z.grad[0, :, 4:] == 0).all() and (z.grad[1, :, :, 3:] == 0).all()
    assert z.grad[0, :, :4, :2].abs().sum() > 0

    p, mask = seg_logits.detach().softmax(1), valid.squeeze(1)
    confident = mask & (p.amax(1) > MASKED['confidence_threshold'])
    predictions = torch.stack(plain_predictions(bank, batch)).detach()
    labeled = torch.stack([sample.pseudo_sem_seg.data != 255 for sample in samples])
    # the agreement is also that of the pixels that the loss leaves out
    agreeing = (predictions.argmax(2) == p.argmax(1))[:, mask]
    expected = dict(
        consistency=consistency_mse(predictions, p, confident),
        agreement=agreeing.float().mean(),
        pixels_consistency=confident.sum() / mask.sum(),
        pixels_weak_ce=labeled[valid].float().mean(),
    )
    for name, decoders in bank.slices.items():
        expected[f'{name}.consistency'] = consistency_mse(predictions[decoders], p, confident)
    assert losses.keys() == {'loss', 'weak_ce', *expected}
    for name, value in expected.items():
        torch.testing.assert_close(losses[name], value)


def test_images_of_nothing_but_padding_give_a_loss_of_0():
    z, seg_logits, samples = make_batch()
    valid = torch.zeros(N, 1, 8 * H, 8 * W, dtype=torch.bool)
    bank = make_bank(loss_consistency=MASKED, **ALL_TERMS)
    losses = run_loss(bank, (z, seg_logits, with_masks(samples, valid)))
    assert losses['loss'] == losses['pixels_weak_ce'] == losses['pixels_consistency'] == 0
    assert all(value.isfinite() for value in losses.values())
