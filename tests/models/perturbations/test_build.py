import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.models.perturbations.build import build_perturbations


def test_a_name_that_would_count_as_a_loss_is_refused():
    with pytest.raises(UserError, match=r'perturbations\.lossy: a name with "loss" in it'):
        build_perturbations(dict(lossy=dict(type='FeatureDrop', num_decoders=1)))
