import pytest
from mmengine.config import ConfigDict

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.writer.dry_run import choose_z


@pytest.mark.parametrize(
    ('backbone', 'head', 'place', 'size'),
    [
        ({}, {}, dict(in_index=2), (32, 16)),  # fused at stride 32, the deepest fine stage at 16
        ({}, dict(in_index=1, in_channels=16), dict(in_layer='conv_seg'), (16, 8)),
        (dict(out_indices=(3,)), dict(in_index=0), dict(in_layer='conv_seg'), (16, 32)),
        (dict(out_indices=(3,)), dict(in_index=0, type='Own'), None, None),
    ],
)
def test_the_fused_features_unless_they_are_coarse_then_the_deepest_fine_stage(
    own, backbone, head, place, size
):
    model = load_config(str(own), {}).model
    model.backbone.update(backbone)
    model.decode_head.update(head)
    if place is None:
        model.decode_head.update(type='FCNHead', in_channels=65)
        with pytest.raises(UserError) as caught:
            choose_z(model)
        assert caught.value.problems[0].key == 'model'
        return
    z, num_classes = choose_z(model)
    assert (z.place, (z.channels, z.stride), num_classes) == (place, size, 3)


def test_a_transformer_of_fixed_size_is_tried_on_that():
    backbone = dict(type='BEiT', img_size=(96, 96), patch_size=16, embed_dims=16, num_layers=1)
    backbone |= dict(num_heads=2, out_indices=(0,))
    head = dict(type='FCNHead', in_channels=16, in_index=0, channels=8, num_convs=1, num_classes=3)
    model = dict(type='EncoderDecoder', backbone=backbone, decode_head=head)
    z, _ = choose_z(ConfigDict(model))
    assert (z.channels, z.stride) == (8, 16)
