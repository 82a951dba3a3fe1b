import pytest

from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import require_buildable


def test_a_config_that_trains_can_be_built(cct):
    config = load_config(str(cct.file), {})
    before = config.to_dict()
    require_buildable(config)
    assert config.to_dict() == before


@pytest.mark.parametrize(
    ('key', 'value', 'said'),
    [
        ('model.decode_head.type', 'PixelShuffleHed', 'PixelShuffleHed is not in the '),
        ('optim_wrapper.optimizer.rl', 1, "'rl'"),
        ('train_dataloader.dataset.labeled.pipeline.0.typ', 'X', "'typ'"),
    ],
)
def test_what_a_library_refuses_is_one_line(cct, key, value, said):
    config = load_config(str(cct.file), {})
    config.merge_from_dict({key: value})
    with pytest.raises(UserError) as caught:
        require_buildable(config)
    line = str(caught.value)
    assert line.startswith(f'{config.filename}: cannot be built (') and said in line
    assert '\n' not in line
