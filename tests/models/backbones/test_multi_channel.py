import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.models import MultiChannelBackbone

BODY = dict(
    type='ResNet', depth=18, num_stages=2, base_channels=4, stem_channels=4, strides=(1, 2),
    dilations=(1, 1), out_indices=(1,),
)  # fmt: skip


@pytest.fixture
def pretrained(tmp_path):
    torch.manual_seed(0)
    body = MODELS.build(BODY)
    torch.save(body.state_dict(), tmp_path / 'body.pth')
    config = dict(BODY, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'body.pth')))
    body.eval()  # returns nothing
    return body, config


def evaluated(backbone, images):
    backbone.eval()
    return backbone(images)[0]


@pytest.mark.parametrize('channels', [2, 5])
def test_pretrained_filters_come_in_turn_and_keep_their_sum(pretrained, channels):
    body, config = pretrained
    backbone = MultiChannelBackbone(channels, config)
    drawn = backbone.backbone.conv1.weight.clone()
    assert drawn.shape[1] == channels
    backbone.init_weights()
    weight = backbone.backbone.conv1.weight
    for index in range(channels):
        torch.testing.assert_close(weight[:, index], body.conv1.weight[:, index % 3] * 3 / channels)
    # the rest is as it was pretrained
    torch.testing.assert_close(backbone.backbone.layer1.state_dict(), body.layer1.state_dict())


@pytest.mark.parametrize('channels', [1, 9])
def test_a_grey_image_and_three_times_three_channels_see_what_three_see(pretrained, channels):
    body, config = pretrained
    backbone = MultiChannelBackbone(channels, config)
    backbone.init_weights()
    images = torch.rand(1, min(channels, 3), 16, 16)
    all_channels, seen = (images.repeat(1, n // len(images[0]), 1, 1) for n in (channels, 3))
    torch.testing.assert_close(evaluated(backbone, all_channels), body(seen)[0])
