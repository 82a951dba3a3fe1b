import pytest
from torch import nn

from mmseg_cct.engine.weights import require_initial_weights
from mmseg_cct.errors import UserError


def network(channels=2):
    return nn.ModuleDict(
        dict(
            backbone=nn.Linear(2, 2),
            decode_head=nn.Linear(2, channels),
            auxiliary_head=nn.Sequential(*(nn.Linear(2, 2) for _ in range(9))),
        )
    )


def test_weights_without_auxiliary_decoders_and_for_other_classes_may_start_a_training():
    state = network(3).state_dict()
    kept = {f'module.{name}': v for name, v in state.items() if 'auxiliary_head' not in name}
    require_initial_weights(network(), dict(state_dict=kept), 'x.pth')


@pytest.mark.parametrize(
    ('names', 'fitting'),
    [
        (('other.weight',), 0),
        (('auxiliary_head.0.weight', 'auxiliary_head.0.bias'), 0),  # of training alone
        (('backbone.weight', 'decode_head.weight'), 1),  # the second in another shape
    ],
)
def test_unrelated_weights_start_none(names, fitting):
    state = network(3).state_dict()
    content = {name: state.get(name, state['backbone.bias']) for name in names}
    with pytest.raises(UserError, match=rf"load_from='x\.pth': has {fitting} of the 4 weights"):
        require_initial_weights(network(), content, 'x.pth')
