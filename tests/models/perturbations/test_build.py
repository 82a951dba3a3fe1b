import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.models.perturbations.build import build_perturbations


@pytest.mark.parametrize(
    ('name', 'settings'), [('feature_drp', dict(num_decoders=0)), ('lossy', dict(type='X'))]
)
def test_a_misspelt_one_and_a_name_that_counts_as_a_loss_are_errors(name, settings):
    with pytest.raises(UserError) as error:
        build_perturbations({'feature_drop': dict(type='FeatureDrop'), name: settings})
    assert error.value.problems[0].key == f'model.auxiliary_head.perturbations.{name}'
