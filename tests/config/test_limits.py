import pytest
from mmengine.config import Config

from mmseg_cct.config.limits import value_problems

SIZE = 'model.domains.a.data_preprocessor.size'
DOMAINS = dict(dataset=dict(domains=dict(a={}, b={})))


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('train_cfg.max_iters', 'many'),
        ('train_cfg.max_iters', True),
        ('train_cfg.val_interval', 0),
        ('optim_wrapper.optimizer.momentum', 1.5),
        ('model.auxiliary_head.loss_consistency.loss_weight', -1),
        ('model.backbone.norm_cfg.momentum', 2),
        ('custom_hooks.0.interval', 0),
        *((SIZE, size) for size in (3, (3,), (3, 0), (3, 2.5))),
    ],
)
def test_values_out_of_range(key, value):
    config = Config()
    config.merge_from_dict({key: value})
    (problem,) = value_problems(config)
    assert problem.key == f'{key}={value!r}'


def test_a_batch_of_a_validation_is_of_one_domain():
    config = dict(val_dataloader=dict(DOMAINS, batch_size=2), train_dataloader=dict(DOMAINS))
    (problem,) = value_problems(config)
    assert problem.key == 'val_dataloader.batch_size=2'
    config['val_dataloader']['batch_size'] = 1
    assert not list(value_problems({**config, SIZE: (3, 3)}))
