import pickle

import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import AgreementGate

SHARES = torch.arange(7) / 6


def test_without_threshold_the_share_is_the_weight():
    assert torch.equal(AgreementGate()(SHARES), SHARES)


@pytest.mark.parametrize('k', range(1, 7))
def test_a_threshold_counts_pixels_with_at_least_that_share(k):
    assert AgreementGate(k / 6)(SHARES).tolist() == [float(i >= k) for i in range(7)]


def test_equal_gates_are_one_key_of_the_compiled_chunks():
    config = dict(type='AgreementGate', threshold=0.5)
    assert len({MODELS.build(config), MODELS.build(config), AgreementGate()}) == 2
    assert pickle.loads(pickle.dumps(AgreementGate(0.5))) == AgreementGate(0.5)


@pytest.mark.parametrize('threshold', [0, -0.1, 1.5])
def test_a_threshold_out_of_range_is_an_error(threshold):
    with pytest.raises(UserError, match=rf'threshold={threshold}: expected a share in \(0, 1\]'):
        AgreementGate(threshold)
