"""Which values a config may have."""

import pytest
from mmengine.config import Config

from mmseg_cct.config.limits import check_values, value_problems
from mmseg_cct.errors import UserError


@pytest.mark.parametrize('palette', [[[1, 2, 3], [4, 5]], [[0, 0, 256]], ['red'], 3])
def test_a_palette_is_a_list_of_colours(palette):
    config = dict(train_dataloader=dict(dataset=dict(labeled=dict(palette=palette))))
    (problem,) = value_problems(config)
    assert 'expected a list of colours, three numbers from 0 to 255 each' in str(problem)
    config['train_dataloader']['dataset']['labeled']['palette'] = [[1, 2, 3], (4, 5, 255)]
    assert not list(value_problems(config))


@pytest.mark.parametrize('size', [3, (3,), (3, 0), (3, 2.5), {'x': (3, 3)}])
def test_a_size_is_height_and_width(size):
    config = Config(dict(model=dict(domains=dict(a=dict(data_preprocessor=dict(size=size))))))
    with pytest.raises(UserError, match=r'domains\.a\.data_preprocessor\.size=.*: expected height'):
        check_values(config)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('train_cfg.max_iters', 'many'),
        ('train_cfg.max_iters', True),
        ('train_cfg.val_interval', 0),
        ('train_dataloader.batch_size', 0),
        ('train_dataloader.dataset.labeled_per_unlabeled', 0),
        ('train_dataloader.num_workers', -1),
        ('val_dataloader.batch_size', 'two'),
        ('randomness.seed', -1),
        ('randomness.seed', 2**32),
        ('randomness.seed', 'seven'),
        ('optim_wrapper.accumulative_counts', 0),
        ('optim_wrapper.optimizer.lr', 'fast'),
        ('optim_wrapper.optimizer.lr', float('nan')),
        ('optim_wrapper.optimizer.momentum', -0.5),
        ('optim_wrapper.optimizer.momentum', 1.5),
        ('custom_hooks.0.momentum', 1.5),
        ('model.auxiliary_head.loss_consistency.loss_weight', -1),
        ('model.backbone.norm_cfg.momentum', 2),
        ('model.decode_head.num_classes', 0),
        ('model.test_cfg.mode', None),
        ('model.test_cfg.mode', 'slid'),
        ('default_hooks.checkpoint.interval', 0),
        ('default_hooks.logger.interval', -1),
        ('val_dataloader.dataset.metainfo.classes', ('a', '\udce9')),
        ('train_dataloader.dataset.labeled.classes', (1, 2)),
    ],
)
def test_values_out_of_range(key, value):
    config = Config()
    config.merge_from_dict({key: value})
    (problem,) = value_problems(config)
    assert str(problem).startswith(f'{key}={value!r}: expected ')


def test_a_sliding_window_has_a_size_and_a_stride():
    config = Config(dict(model=dict(test_cfg=dict(mode='slide', crop_size=(8, 8)))))
    (problem,) = value_problems(config)
    assert str(problem) == 'model.test_cfg.stride: missing; expected one for mode="slide"'
    config.model.test_cfg.stride = (8, 9)
    (problem,) = value_problems(config)
    assert str(problem).startswith('model.test_cfg.stride=(8, 9): windows of (8, 8) leave gaps; ')
    config.model.test_cfg.stride = (0, 8)
    (problem,) = value_problems(config)
    assert str(problem) == 'model.test_cfg.stride=(0, 8): expected height and width, or None'
