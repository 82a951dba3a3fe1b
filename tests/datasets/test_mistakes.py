import pytest

from mmseg_cct.datasets import (
    LoadChannels,
    MultiDomainConcatDataset,
    ScoreAtSize,
    ShapesDataset,
    StrongViews,
)
from mmseg_cct.datasets.samplers.multi_domain_sampler import domain_cycle
from mmseg_cct.datasets.splits import draw_split
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('make', 'key'),
    [
        (lambda: StrongViews(num_views=0), 'StrongViews.num_views=0'),
        (lambda: StrongViews(jitter_prob=1.2), 'StrongViews.jitter_prob=1.2'),
        (lambda: StrongViews(hue=0.6), 'StrongViews.hue=0.6'),
        (lambda: StrongViews(blur_sigma=(2, 1)), 'StrongViews.blur_sigma=(2, 1)'),
        (lambda: LoadChannels(channels=()), 'LoadChannels.channels=()'),
        (lambda: LoadChannels(channels=(0, -1)), 'LoadChannels.channels=(0, -1)'),
        (lambda: LoadChannels(value_range=(9, 0)), 'LoadChannels.value_range=(9, 0)'),
        (lambda: ScoreAtSize((0, 6)), 'ScoreAtSize.size=(0, 6)'),
        (lambda: ShapesDataset(start=0, count=0), 'ShapesDataset.count=0'),
        (lambda: ShapesDataset(start=0, count=1, size=31), 'ShapesDataset.size=31'),
        (lambda: domain_cycle('ab', dict(d=1)), 'train_dataloader.sampler.weights'),
        (lambda: domain_cycle('ab', dict(a=0.5)), 'train_dataloader.sampler.weights.a=0.5'),
        (lambda: MultiDomainConcatDataset(dict(a={}), pipeline={}), 'tta_pipeline'),
        (lambda: draw_split('abc', 0), 'number of labelled images'),
        (lambda: draw_split('abc', 4, names='abcdef'), 'number of labelled images'),
    ],
)
def test_settings_that_do_not_fit_are_named(make, key):
    with pytest.raises(UserError) as caught:
        make()
    assert [problem.key for problem in caught.value.problems] == [key]
    assert '\n' not in str(caught.value)
