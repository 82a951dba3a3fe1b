from pathlib import Path

import pytest
from mmengine.config import ConfigDict

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.writer.add_cct import _find
from mmseg_cct.writer.dry_run import choose_z, try_model


def test_the_fused_features_unless_they_are_coarse_then_the_deepest_fine_stage(own):
    model = load_config(str(own), {}).model
    dry_run = try_model(model)
    assert [(stage.channels, stage.stride) for stage in dry_run.stages] == [
        (8, 4), (16, 8), (32, 16), (64, 32),
    ]  # fmt: skip
    assert (dry_run.fused.channels, dry_run.fused.stride) == (16, 32)
    fine = dry_run.fused._replace(stride=16)
    assert choose_z(dry_run._replace(fused=fine)) == fine
    for fused in (dry_run.fused, None):
        assert choose_z(dry_run._replace(fused=fused)) == dry_run.stages[2]
    coarse = dry_run._replace(stages=dry_run.stages[3:])
    assert choose_z(coarse) == dry_run.fused
    coarse = coarse._replace(fused=None)
    with pytest.raises(UserError, match='neither the input of conv_seg nor a stage'):
        choose_z(coarse)


def test_a_model_that_takes_no_small_image_is_tried_on_a_larger_one():
    name = 'mobilenet-v3-d8-s_lraspp_4xb4-320k_cityscapes-512x1024'
    model = load_config(str(_find(name, Path('cct.py'))[0]), {}).model
    dry_run = try_model(model)  # it pools 49×49 features
    assert (dry_run.fused.channels, dry_run.fused.stride) == (128, 2)


def test_a_transformer_of_fixed_size_is_tried_on_that():
    backbone = dict(type='BEiT', img_size=(96, 96), patch_size=16, embed_dims=16, num_layers=1)
    backbone |= dict(num_heads=2, out_indices=(0,))
    head = dict(type='FCNHead', in_channels=16, in_index=0, channels=8, num_convs=1, num_classes=3)
    model = dict(type='EncoderDecoder', backbone=backbone, decode_head=head)
    (stage,) = try_model(ConfigDict(model)).stages
    assert (stage.channels, stage.stride) == (16, 16)
