import pytest

from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.utils.arguments import require_arguments_of


class Parent:
    def __init__(self, first, *args, second=2, **kwargs):
        pass


def test_arguments_of_the_parent_pass():
    require_arguments_of(Parent, ['first', 'second'], 'Child')


@pytest.mark.parametrize('name', ['secnd', 'args', 'kwargs'])
def test_others_are_an_error(name):
    with pytest.raises(UserError, match=rf'^Child\.{name}: no such argument; '):
        require_arguments_of(Parent, [name], 'Child')


@pytest.mark.parametrize(
    ('component', 'typo', 'meant'),
    [
        (DurableCheckpointHook, 'max_keep_ckpt', 'max_keep_ckpts'),
        (ClassIoUMetric, 'iou_metric', 'iou_metrics'),
        (MultiDomainIoUMetric, 'ignore_indx', 'ignore_index'),
    ],
)
def test_what_a_library_would_swallow_is_an_error(component, typo, meant):
    message = rf'^{component.__name__}\.{typo}: no such argument; did you mean {meant}'
    with pytest.raises(UserError, match=message):
        component(**{typo: 1})
