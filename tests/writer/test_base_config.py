import pytest
import torch
from mmseg.registry import DATASETS
from own_config import LABELED_CROP, UNLABELED_CROP, edit

from mmseg_cct.config.load import load_config
from mmseg_cct.writer.base_config import choose_z


@pytest.mark.parametrize(
    ('wrapped', 'transforms'),
    [
        (f"dict(type='RandomChoice', transforms=[[{LABELED_CROP}], []])", [[UNLABELED_CROP], []]),
        (f"dict(type='RandomApply', prob=1.0, transforms={LABELED_CROP})", [UNLABELED_CROP]),
    ],
)
def test_crops_within_other_transforms_need_no_masks_either(
    write, config_file, wrapped, transforms
):
    config = load_config(str(write(edit(config_file, LABELED_CROP, wrapped)).file), {})
    assert config.train_dataloader.dataset.unlabeled.pipeline[2].transforms == transforms


def test_filled_pixels_are_marked(write, config_file):
    rotated = f"dict(type='RandomRotate', prob=1.0, degree=(30, 30)), {LABELED_CROP}"
    config = load_config(str(write(edit(config_file, LABELED_CROP, rotated)).file), {})
    unlabeled = DATASETS.build(config.train_dataloader.dataset.unlabeled)
    assert len(unlabeled) == 3
    valid = [unlabeled[0]['data_samples'].valid_mask.data for _ in range(20)]
    assert not torch.stack(valid).all()


def test_the_pipeline_of_a_wrapper_counts_without_what_mixes_images(write, config_file):
    mosaic = "dict(type='RandomMosaic', prob=1.0, img_scale=(40, 48))"
    mixed = f"type='MultiImageMixDataset', pipeline=[{mosaic}, *pipeline[2:]]"
    edit(config_file, "type='RepeatDataset', times=2", mixed)
    added = write(edit(config_file, 'pipeline=pipeline)', 'pipeline=pipeline[:2])'))
    assert added.choices[-1].endswith('as the labelled ones, without RandomMosaic')
    config = load_config(str(added.file), {})
    assert [step.type for step in config.train_dataloader.dataset.unlabeled.pipeline] == [
        'LoadImageFromFile', 'MarkValidPixels', 'RandomCrop', 'PackUnlabeledInputs',
    ]  # fmt: skip


def test_edges_of_masks_are_not_looked_for(write, config_file):
    edit(
        config_file,
        "dict(type='PackSegInputs')",
        "dict(type='GenerateEdge'), dict(type='PackSegInputs')",
    )
    dataset = load_config(str(write(str(config_file)).file), {}).train_dataloader.dataset
    assert dataset.labeled.dataset.pipeline[3].type == 'GenerateEdge'
    assert [step.type for step in dataset.unlabeled.pipeline] == [
        'LoadImageFromFile', 'MarkValidPixels', 'RandomCrop', 'PackUnlabeledInputs',
    ]  # fmt: skip


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
