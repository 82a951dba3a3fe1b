import pytest
import torch

from mmseg_cct.models.layers.channel_dropout import ComplementaryDropout


@pytest.mark.parametrize(('keep_ratio', 'kept'), [(0.0, 0), (0.5, 2), (1.0, 5)])
def test_it_masks_whole_channels_of_both_views(keep_ratio, kept):
    torch.manual_seed(0)
    ones = [torch.ones(5, 8, 2, 3), torch.ones(5, 16, 1, 1)]
    first, second = ComplementaryDropout(keep_ratio)(ones, ones)
    untouched = []
    for a, b in zip(first, second):
        assert torch.equal(a + b, torch.full_like(a, 2)) and set(a.unique().tolist()) <= {0, 1, 2}
        assert torch.equal(a, a[..., :1, :1].expand_as(a))
        untouched.append((a == 1).flatten(1).all(1))
    assert torch.equal(*untouched)  # the same pairs at every map
    assert untouched[0].sum() == kept
