import pytest
import torch
from mmseg.registry import MODELS
from torch.nn.functional import interpolate

from mmseg_cct.errors import UserError

timm = pytest.importorskip('timm')
DINOV2, DINOV3 = 'vit_small_patch14_dinov2.lvd142m', 'vit_small_patch16_dinov3.lvd1689m'
NARROW = dict(embed_dim=12, num_heads=3, depth=4)


def build(name=DINOV2, **settings):
    torch.manual_seed(0)
    settings = {**NARROW, 'out_indices': (0, 3), 'pretrained': False, **settings}
    return MODELS.build(dict(type='TimmViT', model_name=name, **settings))


@pytest.mark.parametrize('name', [DINOV2, DINOV3])
def test_maps_are_at_the_stride_and_every_weight_learns(name):
    backbone = build(name)
    maps = backbone(torch.randn(2, 3, 48, 80))
    assert [tuple(feature_map.shape) for feature_map in maps] == [(2, 12, 3, 5)] * 2
    sum(feature_map.square().sum() for feature_map in maps).backward()
    assert [key for key, item in backbone.named_parameters() if item.grad is None] == []


@pytest.mark.parametrize('name', [DINOV2, DINOV3])
def test_a_map_is_the_normalised_output_of_its_layer(name):
    backbone = build(name).eval()
    images = torch.randn(1, 3, 32, 48)
    side = backbone.patch_size
    size = (2 * side, 3 * side)
    resized = interpolate(images, size, mode='bilinear', antialias=True)
    tokens = backbone.timm_model.forward_features(resized if side != 16 else images)
    expected = tokens[:, -6:].transpose(1, 2).unflatten(2, (2, 3))
    assert torch.allclose(backbone(images)[-1], expected, atol=1e-5)


def test_a_frozen_transformer_stays_as_it_is_and_a_trained_one_drops_paths():
    images = torch.randn(2, 3, 32, 32)
    backbone = build(frozen=True, drop_path_rate=0.9).train()
    first, second = backbone(images), backbone(images)
    assert all(torch.equal(a, b) and not a.requires_grad for a, b in zip(first, second))
    assert not any(item.requires_grad for item in backbone.parameters())
    assert not backbone.timm_model.training
    backbone = build(drop_path_rate=0.9, out_indices=(0, 1)).train()
    assert not torch.equal(backbone(images)[-1], backbone(images)[-1])
    assert len(backbone.timm_model.blocks) == 2  # the layers after the last one are dropped


def test_loads_a_file_and_keeps_it_through_init_weights(tmp_path):
    """The authors' files have a mask token, and no dynamic size of the position embedding."""
    saved = timm.create_model(DINOV2, num_classes=0, **NARROW).state_dict()
    torch.save({**saved, 'mask_token': torch.zeros(1, 12)}, tmp_path / 'weights.pth')
    overlay = dict(file=str(tmp_path / 'weights.pth'))
    backbone = build(pretrained=True, pretrained_cfg_overlay=overlay)
    backbone.init_weights()
    loaded = backbone.timm_model.state_dict()
    assert all(torch.equal(value, saved[key]) for key, value in loaded.items())


def test_images_of_another_size_are_one_line():
    with pytest.raises(UserError, match='images of 40×48; expected multiples of 16'):
        build()(torch.zeros(1, 3, 40, 48))
