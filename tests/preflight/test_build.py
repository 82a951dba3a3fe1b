"""What no run could build is found before many runs, or after hours of other work."""

import pytest

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.build import require_buildable


def test_a_config_that_trains_can_be_built(cct):
    config = load_config(str(cct.file), {})
    before = config.to_dict()
    require_buildable(config)
    assert config.to_dict() == before


@pytest.mark.parametrize(
    ('key', 'value', 'expected'),
    [
        ('model.decode_head.type', 'PixelShuffleHed', r"decode_head\.type: no 'PixelShuffleHed'"),
        ('optim_wrapper.optimizer.rl', 1, r"^optim_wrapper\.optimizer: .*'rl'"),
        ('param_scheduler.0.powr', 1, r"^param_scheduler\.0: .*'powr'"),
        ('default_hooks.logger.intervl', 1, r"^default_hooks\.logger: .*'intervl'"),
        ('test_evaluator.type', 'IoUMetrik', r"^test_evaluator\.type: no 'IoUMetrik'"),
        (
            'train_dataloader.dataset.labeled.pipeline.0.typ', 'X',
            r"^train_dataloader\.dataset\.labeled\.pipeline\.0: .*'typ'",
        ),
    ],
)  # fmt: skip
def test_a_misspelt_part_is_one_line(cct, key, value, expected):
    config = load_config(str(cct.file), {})
    config.merge_from_dict({key: value})
    with pytest.raises(UserError, match=expected):
        require_buildable(config)
