import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.models.perturbations.build import build_perturbations


@pytest.mark.parametrize(
    ('perturbations', 'message'),
    [
        (
            dict(noise=dict(type='FeatureNoize')),
            r"perturbations\.noise: no perturbation 'FeatureNoize'; did you mean FeatureNoise",
        ),
        (
            dict(noise=dict(type='xyz')),
            r"no perturbation 'xyz'; expected one of .*SpatialDropout",
        ),
        (dict(noise=dict(num_decoders=2)), r'noise: no type; expected type=\.\.\., one of'),
        (
            dict(FeatureDrop=dict(type='FeatureDrop'), FeatureDrp=dict(num_decoders=0)),
            r'FeatureDrp: no type; did you mean FeatureDrop\?',
        ),
        (dict(lossy=dict(type='FeatureDrop')), r'perturbations\.lossy: a name with "loss" in it'),
    ],
)
def test_perturbations_that_cannot_be_are_named(perturbations, message):
    with pytest.raises(UserError, match=message):
        build_perturbations(perturbations)
