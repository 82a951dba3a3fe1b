"""Each perturbation against its plain equation in `benchmarks/plain.py`, on equal draws.

Of I-VAT it is in `test_intermediate_vat.py`.
"""

import plain
import pytest
import tiny
import torch

from mmseg_cct.models.perturbations import (
    ContextMasking,
    FeatureDrop,
    FeatureNoise,
    GuidedCutout,
    ObjectMasking,
    SpatialDropout,
)

# Settings that leave nothing to chance: γ and the place of a crop are fixed.
FIXED = [
    ('feature_drop', FeatureDrop(2, (0.0, 0.0))),
    ('feature_drop', FeatureDrop(2, (0.6, 0.6))),
    ('guided_cutout', GuidedCutout(2, side_ratio=1.0)),
    ('context_masking', ContextMasking(2)),
    ('object_masking', ObjectMasking(2)),
]


@pytest.mark.parametrize('context_classes', [(), (2,), (3, 1), (0, 1, 2, 3)])
@pytest.mark.parametrize('stride', [1, 4])
@pytest.mark.parametrize(('name', 'perturbation'), FIXED)
def test_without_chance_both_are_equal(name, perturbation, stride, context_classes):
    shared = tiny.context(num_images=2, stride=stride, context_classes=context_classes)
    z = shared.features
    expected = plain.PLAIN[name](z, shared.seg_logits, context_classes, None, perturbation)
    perturbed = tiny.perturb(perturbation, shared).unflatten(-1, z.shape[-2:])
    torch.testing.assert_close(perturbed, expected.expand_as(perturbed), rtol=0, atol=0)
    if name.endswith('masking'):
        kept = plain.foreground(shared.seg_logits, context_classes).mean()
        assert (0 < kept < 1) == (0 < len(context_classes) < 4)


@pytest.mark.parametrize(
    ('name', 'perturbation', 'smallest', 'largest', 'deviation'),
    [
        ('dropout', SpatialDropout(1, 0.2), 0, 1 / 0.8, 0.5),
        ('feature_noise', FeatureNoise(1, 0.3), 0.7, 1.3, 0.3 / 3**0.5),
    ],
)
def test_random_factors_have_one_distribution(name, perturbation, smallest, largest, deviation):
    shared = tiny.context(channels=2000)
    shared.features.fill_(1)
    torch.manual_seed(0)
    of_plain = plain.PLAIN[name](shared.features, None, (), None, perturbation)
    of_ours = tiny.perturb(perturbation, shared)[0].view_as(of_plain)
    for factors in (of_plain, of_ours):
        assert factors.aminmax() == pytest.approx((smallest, largest), abs=1e-3)
        assert factors.mean() == pytest.approx(1, abs=0.02)
        assert factors.std() == pytest.approx(deviation, rel=0.02)
        # a channel drops as a whole, each image on its own; the batch shares its noise
        assert (factors == factors[..., :1, :1]).all() == (name == 'dropout')
        assert (factors == factors[:1]).all() == (name == 'feature_noise')
