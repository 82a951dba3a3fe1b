"""A model as it was trained, with classes and colours, and images as it was trained on them."""

import copy

import numpy as np
import pytest
import torch
from mmengine.config import Config

from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.files.palette import class_colours
from mmseg_cct.errors import UserError


def load_model(config, checkpoint, *args):
    return Run(config, checkpoint, '').load_model(*args)


@pytest.fixture
def bare(trained, tmp_path):
    """The checkpoint's weights without their meta and auxiliary decoders."""
    state = torch.load(trained.checkpoint, weights_only=False)['state_dict']
    kept = {name: value for name, value in state.items() if 'auxiliary_head' not in name}
    torch.save(dict(state_dict=kept), tmp_path / 'bare.pth')
    return str(tmp_path / 'bare.pth')


def test_classes_and_palette_come_from_the_config_or_are_found(trained, bare):
    """Where the checkpoint has none."""
    config = copy.deepcopy(trained.config)
    meta = load_model(copy.deepcopy(config), bare, 'cpu').dataset_meta
    assert tuple(meta['classes']) == ('ground', 'thing', 'other')
    assert np.array_equal(meta['palette'], trained.palette)
    for split in ('train', 'val', 'test'):
        config[f'{split}_dataloader'].pop('dataset')
    names = [f'class {index}' for index in range(3)]
    assert load_model(config, bare, 'cpu').dataset_meta['palette'] == [
        *map(list, class_colours(names))
    ]


def test_without_a_test_pipeline_it_is_that_of_the_test_set(trained):
    config = copy.deepcopy(trained.config)
    config.test_pipeline = []
    model = load_model(config, str(trained.checkpoint), 'cpu')
    assert model.cfg.test_pipeline == config.test_dataloader.dataset.pipeline


def test_a_checkpoint_of_other_classes_is_refused(trained):
    config = copy.deepcopy(trained.config)
    config.model.decode_head.num_classes = 5
    with pytest.raises(UserError, match=r'6.pth: does not fit the config in 7 .*trained on 3 cl'):
        load_model(config, str(trained.checkpoint), 'cpu')


def test_the_weights_that_a_training_started_from_are_not_fetched(trained, bare):
    """Of timm they are without any setting; offline, it would try for a minute."""
    config = copy.deepcopy(trained.config)
    config.model.backbone = dict(type='TIMMBackbone', model_name='resnet18', out_indices=(0,))
    with pytest.raises(UserError, match='backbone'):  # the checkpoint is of another model
        load_model(config, bare)
    assert config.model.backbone.pretrained is False


@pytest.mark.parametrize('changed', [False, True])
def test_a_test_pipeline_unlike_that_of_the_tests_is_told(trained, bare, messages, changed):
    config = copy.deepcopy(trained.config)
    config.test_pipeline = [
        dict(type='LoadImageFromFile'),
        *config.test_dataloader.dataset.pipeline[1:],
    ]
    if changed:
        config.test_pipeline.insert(1, dict(type='Resize', scale=(16, 16)))
    load_model(config, bare, 'cpu')
    assert sum(line.startswith('test_pipeline: unlike') for line in messages) == changed


def test_a_model_of_several_domains_needs_one(bare):
    config = Config(dict(model=dict(domains=dict(sea={}, land={}))))
    with pytest.raises(UserError, match=r'--domain is missing: expected one of sea, land'):
        load_model(config, bare)
