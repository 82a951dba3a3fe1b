import pytest
from mmengine.hooks import LoggerHook
from mmengine.registry import HOOKS, MODELS

from mmseg_cct.engine.hooks import MainProcessLoggerHook
from mmseg_cct.models import PSPNeck
from mmseg_cct.preflight.components import class_of, is_a


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        (dict(type='PSPNeck'), PSPNeck),
        (dict(type=PSPNeck), PSPNeck),
        (dict(type='PSPNek'), None),
        (dict(type='../x'), None),  # a registry would try to import it
        (None, None),
    ],
)
def test_a_type_is_a_class_or_its_name(settings, expected):
    assert class_of(settings, MODELS) is expected


def test_a_subclass_is_what_its_base_is():
    assert is_a(dict(type='MainProcessLoggerHook'), HOOKS, LoggerHook)
    assert not is_a(dict(type='LoggerHook'), HOOKS, MainProcessLoggerHook)
    assert not is_a(dict(type='Unknown'), HOOKS, LoggerHook)
