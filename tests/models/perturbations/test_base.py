"""What every perturbation promises; a new one adds a row to `PERTURBATIONS`."""

import pytest
import tiny
import torch

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


def project(perturbation, context, group, seed=5):
    torch.manual_seed(seed)
    return perturbation.project(group, context)


def projected_perturb(perturbation, context, group):
    perturbed = tiny.perturb(perturbation, context, group)
    return torch.einsum('kcd,knds->kncs', group.projection, perturbed)


@each_perturbation
@pytest.mark.parametrize('positions', [None, torch.tensor([4, 0, 17, 29])])
def test_project_is_the_projection_of_perturb_and_so_are_its_gradients(cls, positions):
    results = []
    for projected in (project, projected_perturb):
        context = tiny.context(torch.float64, positions=positions)
        group = tiny.decoders(K, torch.float64)
        context.features.requires_grad_()
        group.projection.retain_grad()
        result = projected(cls(num_decoders=K), context, group)
        result.sin().sum().backward()
        results.append((result, context.features.grad, group.projection.grad))
    for actual, expected in zip(*results):
        assert expected.abs().max() > 0
        torch.testing.assert_close(actual, expected)


@each_perturbation
def test_a_seed_replays_a_draw_and_decoders_draw_apart_from_each_other(cls):
    context, group = tiny.context(), tiny.decoders(K)
    perturbation = cls(num_decoders=K)
    first, second, of_another_seed = (
        tiny.perturb(perturbation, context, group, s) for s in (5, 5, 6)
    )
    assert torch.equal(first, second)
    is_random = cls not in (ContextMasking, ObjectMasking)
    assert torch.equal(first, of_another_seed) == torch.equal(first[0], first[1]) == (not is_random)


@each_perturbation
def test_leaves_its_input_and_every_grad_alone(cls):
    context, bank = tiny.context(), tiny.bank(K)
    context.features.requires_grad_()
    leaves = [context.features, *bank.parameters()]
    for leaf in leaves:
        leaf.grad = torch.full_like(leaf, 7)
    before = context.features.detach().clone()
    for method in ('perturb', 'project'):
        getattr(cls(num_decoders=K), method)(bank.group(slice(0, K)), context)
    assert torch.equal(context.features, before)
    assert all((leaf.grad == 7).all() for leaf in leaves)


@pytest.mark.parametrize('cls', [cls for cls in PERTURBATIONS if cls is not FeatureNoise])
def test_at_some_positions_z_changes_as_on_the_whole_map(cls):
    positions = torch.tensor([4, 0, 17, 29])  # F-Noise draws for these alone
    whole, part = (
        tiny.perturb(cls(num_decoders=K), tiny.context(positions=chosen), tiny.decoders(K))
        for chosen in (None, positions)
    )
    torch.testing.assert_close(part, whole[..., positions])
