import pytest

from mmseg_cct.config.load import load_config
from mmseg_cct.writer.dry_run import choose_z


@pytest.mark.parametrize(
    ('backbone', 'head', 'selector', 'size'),
    [
        ({}, {}, dict(in_index=2), (32, 16)),  # fused at stride 32, the deepest fine stage at 16
        ({}, dict(in_index=1, in_channels=16), dict(in_layer='conv_seg'), (16, 8)),
        (dict(out_indices=(3,)), dict(in_index=0), dict(in_layer='conv_seg'), (16, 32)),
    ],
)
def test_the_fused_features_unless_they_are_coarse_then_the_deepest_fine_stage(
    config_file, backbone, head, selector, size
):
    model = load_config(str(config_file), {}).model
    model.backbone.update(backbone)
    model.decode_head.update(head)
    z, num_classes = choose_z(model)
    assert (z.selector, (z.channels, z.stride), num_classes) == (selector, size, 3)
