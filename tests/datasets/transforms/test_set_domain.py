import pytest
from mmseg.structures import SegDataSample

from mmseg_cct.datasets import SetDomain
from mmseg_cct.errors import UserError


def test_set_domain_marks_samples_in_every_shape():
    one, views = SegDataSample(), [SegDataSample(), SegDataSample()]
    branches = dict(labeled=SegDataSample(), unlabeled=SegDataSample())
    transform = SetDomain('x')
    for samples in (one, views, branches):
        assert transform(dict(data_samples=samples))['data_samples'] is samples
    assert {each.domain for each in (one, *views, *branches.values())} == {'x'}


def test_what_is_not_packed_is_an_error():
    with pytest.raises(UserError, match=r'^domain x: its pipeline gives no data_samples; expected'):
        SetDomain('x')(dict(img=1))
