import pytest
from mmengine.config import Config

from mmseg_cct.config.schedulers import move_scheduler_ends


@pytest.mark.parametrize(
    ('scheduler', 'key', 'end'),
    [
        (dict(type='PolyLR', by_epoch=False, end=8), 'end', 4),
        (dict(type='PolyLR', by_epoch=False, end=3), 'end', 3),  # it ended before the training
        (dict(type='PolyLR', by_epoch=True, end=8), 'end', 8),  # epochs
        (dict(type='CosineAnnealingLR', by_epoch=False, T_max=8), 'T_max', 4),
    ],
)
def test_what_ended_with_the_training_moves_with_it(scheduler, key, end):
    for given in (scheduler, [scheduler]):
        config = Config(dict(train_cfg=dict(max_iters=4), param_scheduler=given))
        move_scheduler_ends(config, 8)
        found = config.param_scheduler
        assert (found[0] if isinstance(found, list) else found)[key] == end
