import copy

import pytest
import tiny
from mmengine.config import Config
from mmseg.registry import MODELS

from mmseg_cct.config.domains import (
    config_of_domain,
    merge_settings,
    pipeline_for_tests,
    require_domain,
)
from mmseg_cct.errors import UserError

ONE = Config(dict(model=dict(), test_dataloader=dict(dataset=dict(pipeline=[1]))))
TWO = Config(
    dict(
        model=tiny.multi_domain_config(discriminator=dict(type='DomainDiscriminator')),
        test_dataloader=dict(dataset=dict(domains=dict(first=dict(pipeline=[2])))),
        test_evaluator=dict(type='MultiDomainIoUMetric'),
        tta_pipeline=dict(first=[3]),
    )
)


def test_the_config_of_a_domain_is_that_of_a_network_for_one_data_set():
    before = TWO.to_dict()
    config = config_of_domain(TWO, 'first')
    assert TWO.to_dict() == before
    assert config.model.type == 'CCTSegmentor' and config.model.data_preprocessor.size == (32, 32)
    assert not {'domains', 'discriminator'} & config.model.keys()
    assert (config.test_pipeline, config.tta_pipeline) == ([2], [3])
    assert pipeline_for_tests(config) == [2] and 'test_evaluator' not in config
    MODELS.build(config.model)
    with pytest.raises(UserError, match=r'^the config: no test_dataloader\.dataset\.pipeline;'):
        pipeline_for_tests(config_of_domain(TWO, 'second'))


@pytest.mark.parametrize(
    ('config', 'domain', 'key'),
    [
        (ONE, 'first', '--domain first'),
        (TWO, None, '--domain is missing'),
        (TWO, 'third', '--domain third'),
    ],
)
def test_a_domain_is_named_where_there_are_several(config, domain, key):
    with pytest.raises(UserError, match=f'^{key}'):
        require_domain(config, domain)


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
