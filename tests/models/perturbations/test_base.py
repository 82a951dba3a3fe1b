"""What every perturbation promises; a new one adds a row to `PERTURBATIONS`."""

import pytest
import tiny
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.models.perturbations import (
    ContextMasking,
    FeatureDrop,
    FeatureNoise,
    GuidedCutout,
    IntermediateVAT,
    ObjectMasking,
    SpatialDropout,
)

K = 3
PERTURBATIONS = [
    IntermediateVAT,
    SpatialDropout,
    GuidedCutout,
    ContextMasking,
    ObjectMasking,
    FeatureDrop,
    FeatureNoise,
]
each_perturbation = pytest.mark.parametrize('cls', PERTURBATIONS)
RANDOM = [cls for cls in PERTURBATIONS if cls not in (ContextMasking, ObjectMasking)]


def project(perturbation, context, group, seed=5):
    torch.manual_seed(seed)
    return perturbation.project(group, context)


@each_perturbation
@pytest.mark.parametrize('positions', [None, torch.tensor([4, 0, 17, 29])])
def test_project_is_the_projection_of_perturb(cls, positions):
    context, group = tiny.context(positions=positions), tiny.decoders(K)
    perturbed = tiny.perturb(cls(num_decoders=K), context, group)
    assert perturbed.shape == (K, tiny.N, tiny.D, tiny.H * tiny.W if positions is None else 4)
    projected = project(cls(num_decoders=K), context, group)
    expected = torch.einsum('kcd,knds->kncs', group.projection, perturbed)
    torch.testing.assert_close(projected, expected)


@each_perturbation
def test_gradients_of_project_are_those_of_perturb(cls):
    gradients = []
    for projected in (
        lambda p, c, g: project(p, c, g),
        lambda p, c, g: torch.einsum('kcd,knds->kncs', g.projection, tiny.perturb(p, c, g)),
    ):
        context, group = tiny.context(torch.float64), tiny.decoders(K, torch.float64)
        context.features.requires_grad_()
        group.projection.retain_grad()
        projected(cls(num_decoders=K), context, group).sin().sum().backward()
        gradients.append((context.features.grad, group.projection.grad))
    for actual, expected in zip(*gradients):
        assert expected.abs().max() > 0
        torch.testing.assert_close(actual, expected)


@each_perturbation
def test_a_seed_replays_a_draw(cls):
    context, group = tiny.context(), tiny.decoders(K)
    first, second, other = (
        tiny.perturb(cls(num_decoders=K), context, group, seed=seed) for seed in (5, 5, 6)
    )
    assert torch.equal(first, second)
    assert torch.equal(first, other) == (cls not in RANDOM)


@pytest.mark.parametrize('cls', RANDOM)
def test_decoders_draw_apart_from_each_other(cls):
    context, group = tiny.context(), tiny.decoders(K)
    perturbed = tiny.perturb(cls(num_decoders=K), context, group)
    assert not torch.equal(perturbed[0], perturbed[1])


@each_perturbation
@pytest.mark.parametrize('grad_enabled', [True, False])
def test_leaves_its_input_and_every_grad_alone(cls, grad_enabled):
    context, bank = tiny.context(), tiny.bank(K)
    context.features.requires_grad_()
    leaves = [context.features, *bank.parameters()]
    for leaf in leaves:
        leaf.grad = torch.full_like(leaf, 7)
    before = context.features.detach().clone()
    with torch.set_grad_enabled(grad_enabled):
        for method in ('perturb', 'project'):
            result = getattr(cls(num_decoders=K), method)(bank.group(slice(0, K)), context)
            assert result.requires_grad == grad_enabled
    assert torch.equal(context.features, before)
    assert all((leaf.grad == 7).all() for leaf in leaves)


@each_perturbation
def test_changes_z_and_keeps_its_type(cls):
    for dtype in (torch.float32, torch.float64):
        context, group = tiny.context(dtype), tiny.decoders(K, dtype)
        perturbed = tiny.perturb(cls(num_decoders=K), context, group)
        assert perturbed.dtype == dtype
        assert not torch.allclose(perturbed, context.features.flatten(2))


@each_perturbation
def test_runs_under_autocast(cls):
    context, group = tiny.context(), tiny.decoders(K)
    exact = project(cls(num_decoders=K), context, group)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        rounded = project(cls(num_decoders=K), context, group).float()
    assert (rounded - exact).abs().max() <= 2e-2 * exact.abs().max()


@each_perturbation
def test_rejects_a_negative_number_of_decoders(cls):
    with pytest.raises(UserError, match=rf'{cls.__name__}.num_decoders=-1: expected a whole'):
        cls(num_decoders=-1)


@pytest.mark.parametrize('cls', [cls for cls in PERTURBATIONS if cls is not FeatureNoise])
def test_at_some_positions_z_changes_as_on_the_whole_map(cls):
    positions = torch.tensor([4, 0, 17, 29])  # F-Noise draws for these alone
    whole, part = (
        tiny.perturb(cls(num_decoders=K), tiny.context(positions=chosen), tiny.decoders(K))
        for chosen in (None, positions)
    )
    torch.testing.assert_close(part, whole[..., positions])
