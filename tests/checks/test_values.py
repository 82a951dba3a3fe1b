"""The kinds of sections, and what a training needs as a whole."""

import re

import pytest
from mmengine.config import Config
from mmseg.datasets import BaseSegDataset
from mmseg.registry import MODELS

from mmseg_cct.checks.values import check_values, value_problems
from mmseg_cct.config.structure import check_structure
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    'config',
    [
        {},
        dict(model=None, train_dataloader=None, custom_hooks=None, default_scope=None),
        dict(
            model=dict(type='X', domains=dict(a=dict(data_preprocessor=dict(size=(2, 3))))),
            param_scheduler=[dict(type='PolyLR')],
            val_evaluator=dict(type='IoUMetric'),
            test_evaluator=[dict(type='IoUMetric'), dict(type='X')],
            custom_hooks=[dict(type='EMAHook')],
            default_scope='mmseg',
        ),
    ],
)
def test_sections_that_may_be(config):
    check_structure(Config(config))
    check_values(Config(config))


def test_an_object_from_python_may_stand_for_its_config():
    dataset = BaseSegDataset.__new__(BaseSegDataset)
    check_structure(dict(train_dataloader=dict(dataset=dataset)))


@pytest.mark.parametrize(
    ('config', 'expected'),
    [
        (dict(model='x'), "model='x': expected a dict, or None"),
        (dict(train_cfg=[3]), r'train_cfg=\[3\]: expected a dict, or None'),
        (dict(test_dataloader=True), 'test_dataloader=True: expected a dict'),
        (dict(val_dataloader=dict(dataset=[{}])), r'val_dataloader\.dataset=\[\{\}\]: expected a'),
        (dict(param_scheduler=[{}, 0]), r'param_scheduler=\[\{\}, 0\]: expected a dict or list of'),
        (
            dict(custom_hooks=dict(a=1)),
            r"custom_hooks=\{'a': 1\}: expected a list of dicts, or None",
        ),
        (dict(default_hooks=dict(logger=[{}])), r'default_hooks\.logger=\[\{\}\]: expected a d'),
        (dict(custom_hooks=[[]]), r'custom_hooks=\[\[\]\]: expected a list of dicts'),
        (dict(default_scope=['mmseg']), r"default_scope=\['mmseg'\]: expected a text, or None"),
        (dict(load_from=3), 'load_from=3: expected a text'),
    ],
)
def test_sections_of_another_kind(config, expected):
    with pytest.raises(UserError, match=expected):
        check_structure(Config(config))


@pytest.mark.parametrize('size', [3, (3,), (3, 0), (3, 2.5), {'x': (3, 3)}])
def test_a_size_is_height_and_width(size):
    config = Config(dict(model=dict(domains=dict(a=dict(data_preprocessor=dict(size=size))))))
    with pytest.raises(UserError, match=r'domains\.a\.data_preprocessor\.size=.*: expected height'):
        check_values(config)


@pytest.mark.parametrize(
    ('component', 'expected'),
    [
        (dict(type='PairwiseVariance', num_decoders=2), None),
        (dict(type='PairwiseVariance', num_decoders=1), 'a whole number from 2'),
        (dict(type='PairwiseVariance', num_decoders=2.0), 'a whole number from 2'),
        (dict(type='PairwiseVariance', num_decoders=True), 'a whole number from 2'),
        (dict(type='KLConsistency', confidence_threshold=None), None),
        (dict(type='KLConsistency', confidence_threshold=2), 'a number in [0, 1], or None'),
        (dict(type='FeatureDrop', num_decoders=0), None),
        (dict(type='FeatureDrop', num_decoders=-1), 'a whole number from 0'),
        (dict(type='Unknown', num_decoders=-1), None),
    ],
)
def test_constructors_state_the_ranges_of_a_config(component, expected):
    config = Config(dict(model=dict(auxiliary_head=dict(perturbations=dict(x=component)))))
    key = 'model.auxiliary_head.perturbations.x'
    value = list(component.values())[1]
    found = [f'{key}.{list(component)[1]}={value!r}: expected {expected}'] if expected else []
    assert [str(problem) for problem in value_problems(config)] == found
    if expected:
        with pytest.raises(UserError, match=re.escape(found[0].removeprefix(f'{key}.'))):
            MODELS.build(component)
