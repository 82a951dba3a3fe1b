import copy

import pytest
from mmengine.config import Config

from mmseg_cct.config.domains import merge_settings, pipeline_for_tests, require_one_domain
from mmseg_cct.errors import UserError

ONE = Config(dict(model=dict(), test_dataloader=dict(dataset=dict(pipeline=[1]))))
TWO = Config(
    dict(
        model=dict(domains=dict(sea=dict(), land=dict())),
        test_dataloader=dict(dataset=dict(domains=dict(sea=dict(pipeline=[2])))),
    )
)


def test_the_pipeline_is_that_of_the_domain():
    assert pipeline_for_tests(ONE) == [1]
    assert pipeline_for_tests(TWO, 'sea') == [2]
    expected = r'^the config: no test_dataloader\.dataset\.domains\.land\.pipeline; expected one$'
    with pytest.raises(UserError, match=expected):
        pipeline_for_tests(TWO, 'land')


def test_a_domain_is_named_where_there_are_several():
    for config, domain, key in (
        (ONE, 'sea', '--domain sea'),
        (TWO, None, '--domain is missing'),
        (TWO, 'air', '--domain air'),
    ):
        with pytest.raises(UserError, match=f'^{key}'):
            pipeline_for_tests(config, domain)


def test_some_tools_take_one_data_set():
    require_one_domain(ONE, 'a.py')
    with pytest.raises(UserError, match=r'^a\.py: several domains \(sea, land\)'):
        require_one_domain(TWO, 'a.py')


def test_own_settings_win_and_leave_the_common_ones_alone():
    common = dict(type='Head', classes=3, loss=[dict(type='A', weight=1)], sub=dict(a=1, b=2))
    before = copy.deepcopy(common)
    merged = merge_settings(common, dict(classes=5, sub=dict(b=3)), 'key')
    assert merged == dict(
        type='Head', classes=5, loss=[dict(type='A', weight=1)], sub=dict(a=1, b=3)
    )
    merged.loss[0].weight = 7
    assert common == before
    assert merge_settings(common, None, 'key') == common
    assert merge_settings(None, dict(classes=5), 'key') is None
