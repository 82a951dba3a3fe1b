import pytest
from mmengine.config import Config

from mmseg_cct.config.load import load_config
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


@pytest.mark.parametrize(
    ('options', 'end'),
    [
        ({}, 6),
        ({'train_cfg.max_iters': 7}, 7),
        ({'train_cfg.max_iters': 7, 'param_scheduler.0.end': 5}, 5),
    ],
)
def test_the_schedule_ends_with_the_training(cct, options, end):
    assert load_config(str(cct.file), options).param_scheduler[0].end == end


def test_a_warm_up_keeps_its_end(cct):
    cct.config.param_scheduler.insert(0, dict(type='LinearLR', by_epoch=False, begin=0, end=1))
    cct.config.param_scheduler.append(dict(type='StepLR', by_epoch=True, step_size=1, end=2))
    cct.write()
    schedulers = load_config(str(cct.file), {'train_cfg.max_iters': 9}).param_scheduler
    assert [scheduler.end for scheduler in schedulers] == [1, 9, 2]
