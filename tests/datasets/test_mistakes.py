import pytest

from mmseg_cct.datasets.samplers.multi_domain_sampler import domain_cycle
from mmseg_cct.datasets.splits import draw_split
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('make', 'key'),
    [
        (lambda: domain_cycle('ab', dict(d=1)), 'train_dataloader.sampler.weights'),
        (lambda: domain_cycle('ab', dict(a=0.5)), 'train_dataloader.sampler.weights.a=0.5'),
        (lambda: draw_split('abc', 4, names='abcdef'), 'number of labelled images'),
    ],
)
def test_settings_that_do_not_fit_are_named(make, key):
    with pytest.raises(UserError) as caught:
        make()
    assert [problem.key for problem in caught.value.problems] == [key]
