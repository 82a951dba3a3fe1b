import pytest
from mmengine.registry import Registry

from mmseg_cct.utils import deprecation
from mmseg_cct.utils.deprecation import register_old_name, renamed_arguments


class Pool:
    @renamed_arguments(bins='pool_scales')
    def __init__(self, channels, pool_scales=(1,)):
        self.channels, self.pool_scales = channels, pool_scales


@pytest.fixture
def logged(monkeypatch):
    lines = []
    monkeypatch.setattr(deprecation, 'print_log', lambda line, **kwargs: lines.append(line))
    return lines


def test_an_old_argument_reaches_its_new_name_with_one_line(logged):
    pool = Pool(8, bins=(2, 3))
    assert (pool.channels, pool.pool_scales) == (8, (2, 3))
    assert logged == [
        'Pool.bins is called Pool.pool_scales now; the old name goes with the next release'
    ]


def test_a_new_argument_says_nothing(logged):
    assert Pool(8, pool_scales=(6,)).pool_scales == (6,)
    assert logged == []


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match='old name of pool_scales'):
        Pool(8, bins=(1,), pool_scales=(2,))


def test_an_old_type_builds_the_new_component_with_one_line(logged):
    registry = Registry('pool')
    registry.register_module(module=Pool)
    register_old_name(registry, 'OldPool', Pool)
    assert isinstance(registry.build(dict(type='OldPool', channels=4)), Pool)
    assert logged == ['OldPool is called Pool now; the old name goes with the next release']
