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
from mmseg_cct.models.perturbations.base import bounding_boxes

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
    first, second, other = (tiny.perturb(perturbation, context, group, s) for s in (5, 5, 6))
    assert torch.equal(first, second)
    is_random = cls not in (ContextMasking, ObjectMasking)
    assert torch.equal(first, other) == torch.equal(first[0], first[1]) == (not is_random)


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


def masks(*rectangles, num_images=1, size=(40, 50)):
    """Masks with rectangles (image, left, top, right, bottom)."""
    foreground = torch.zeros(num_images, *size, dtype=torch.bool)
    for image, left, top, right, bottom in rectangles:
        foreground[image, top:bottom, left:right] = True
    return foreground


def sorted_boxes(foreground, min_side=8):
    boxes = bounding_boxes(foreground.numpy().astype('uint8'), min_side)
    assert boxes.dtype == torch.int64 and boxes.shape[1:] == (5,)
    return sorted(tuple(box) for box in boxes.tolist())


L_SHAPE = [(0, 5, 30, 25, 32), (0, 5, 12, 8, 32)]
CORNERS = [(0, 0, 0, 10, 10), (0, 10, 10, 20, 20)]
SEVERAL = [(0, 1, 2, 12, 20), (0, 20, 2, 50, 11), (2, 0, 0, 50, 40)]


@pytest.mark.parametrize(
    ('rectangles', 'boxes'),
    [
        (SEVERAL, SEVERAL),
        ([], []),
        (L_SHAPE, [(0, 5, 12, 25, 32)]),
        (CORNERS, [(0, 0, 0, 20, 20)]),
        ([(0, 3, 3, 10, 33)], []),  # 7 pixels wide
        ([(0, 3, 3, 33, 10)], []),  # 7 pixels high
        ([(0, 3, 3, 11, 11)], [(0, 3, 3, 11, 11)]),
    ],
)
def test_every_object_but_specks_has_its_box(rectangles, boxes):
    assert sorted_boxes(masks(*rectangles, num_images=3)) == boxes
