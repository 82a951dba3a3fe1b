"""I-VAT against finite differences of the divergence in float64, as the equations are written."""

import pytest
import tiny
import torch
from plain import PlainDecoder, adversarial_noise

from mmseg_cct.models.perturbations import IntermediateVAT, intermediate_vat

K = 2
XI = 1e-4  # of the finite differences: float64 resolves them to 1e-4 or better


def plain_decoders(group):
    """The same decoders, one module each, in float64."""
    chain = group.chain
    return [
        PlainDecoder(
            group.projection[k],
            [w[k] for w in chain.weights],
            [b[k] for b in chain.biases],
            chain.final_activation,
        ).double()
        for k in range(len(group.projection))
    ]


def draw(perturbation, shared, group, seed=5):
    """r_adv `(k, N, D, h, w)` in float64."""
    change = tiny.perturb(perturbation, shared, group, seed=seed) - shared.features.flatten(2)
    return change.double().unflatten(-1, shared.features.shape[-2:])


def full_noise(projected, group, seed=0):
    """Gaussian noise `(k, N, D, h, w)` whose projection is the given one, `(k, N, C, h·w)`."""
    weight = group.projection.detach().double().unsqueeze(1)
    generator = torch.Generator().manual_seed(seed)
    size = (*projected.shape[:2], weight.shape[-1], projected.shape[-1])
    noise = torch.randn(size, generator=generator, dtype=torch.float64)
    noise = noise + torch.linalg.pinv(weight) @ (projected.double() - weight @ noise)
    return noise.unflatten(-1, (tiny.H, tiny.W))


@pytest.fixture
def projected_noise(monkeypatch):
    """The probing noise of the last draw, W r `(k, N, C, h·w)`."""
    drawn = {}
    original = intermediate_vat._projected_noise

    def spy(*args, **kwargs):
        drawn['noise'] = original(*args, **kwargs)
        return drawn['noise']

    monkeypatch.setattr(intermediate_vat, '_projected_noise', spy)
    return drawn


@pytest.mark.parametrize(('width', 'channels'), [(4, 10), (12, 3)])
def test_noise_has_the_covariance_of_projected_noise(width, channels):
    """W Wᵀ, which is singular where a decoder is wider than z."""
    torch.manual_seed(0)
    weight = torch.randn(1, width, channels)
    noise = intermediate_vat._projected_noise(weight, torch.empty(1, 1, width, 50_000))[0, 0]
    torch.testing.assert_close(noise.cov(), weight[0] @ weight[0].T, rtol=0, atol=0.2)


def norms(r):
    return r.flatten(2).norm(dim=2)


def divergence(decoder, z, r):
    """KL(g(z) ‖ g(z + r)) of each image."""
    clean, noisy = decoder(z).log_softmax(1), decoder(z + r).log_softmax(1)
    return (clean.exp() * (clean - noisy)).flatten(1).sum(1)


@pytest.mark.parametrize(
    ('final_activation', 'memory_budget', 'epsilon'),
    [(False, None, 2.0), (True, 2000, 2.0), (True, None, 0.1)],
)
def test_direction_is_the_gradient_by_finite_differences_and_length_epsilon(
    projected_noise, final_activation, memory_budget, epsilon
):
    setting = IntermediateVAT(K, epsilon, XI)
    shared = tiny.context()
    group = tiny.decoders(K, final_activation=final_activation, memory_budget=memory_budget)
    actual = draw(setting, shared, group)
    noise = full_noise(projected_noise['noise'], group)
    for k, decoder in enumerate(plain_decoders(group)):
        expected = adversarial_noise(shared.features.double(), decoder, noise[k], setting)
        assert (actual[k] - expected).norm() <= 1e-3 * expected.norm()
    length = norms(actual)
    torch.testing.assert_close(length, torch.full_like(length, epsilon), rtol=1e-4, atol=0)


@pytest.mark.parametrize(
    ('change', 'shortest', 'longest'),
    [
        (lambda projection, _: projection[:, 1].zero_(), 1.999, 2.001),
        (lambda projection, _: projection[:, ::2].zero_(), 1.999, 2.001),
        (lambda projection, _: projection.zero_(), 0, 1e-6),
        # dependent rows and a dead z
        (lambda projection, z: (projection[:, 1].copy_(projection[:, 0]), z[0].zero_()), 0, 2.001),
        (lambda projection, _: projection.mul_(1e4), 0, 2.001),  # saturated predictions
        (lambda projection, _: projection.mul_(1e-12), 1.9, 2.001),  # its squares underflow
    ],
)
def test_decoders_out_of_the_ordinary_give_no_nan(change, shortest, longest):
    shared, group = tiny.context(), tiny.decoders(K)
    with torch.no_grad():
        change(group.projection, shared.features)
    length = norms(draw(IntermediateVAT(K, 2.0), shared, group))
    assert shortest <= length.min() and length.max() <= longest


def test_is_computed_in_float32_under_autocast():
    shared, group = tiny.context(), tiny.decoders(K)
    exact = draw(IntermediateVAT(K), shared, group)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        under_autocast = tiny.perturb(IntermediateVAT(K), shared, group)
    assert under_autocast.dtype == torch.float32
    change = under_autocast - shared.features.flatten(2)
    torch.testing.assert_close(change.double().flatten(2), exact.flatten(2), rtol=1e-5, atol=1e-6)
