import importlib

import pytest
from mmengine.hooks import LoggerHook
from mmengine.registry import HOOKS, MODELS, OPTIMIZERS
from torch.optim import SGD

from mmseg_cct.engine.hooks import MainProcessLoggerHook
from mmseg_cct.models import PSPNeck
from mmseg_cct.preflight.components import class_of, is_a, takes, unknown_type


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        (dict(type='PSPNeck'), PSPNeck),
        (dict(type=PSPNeck), PSPNeck),
        (dict(type='PSPNek'), None),
        (dict(type='../x'), None),  # a registry would try to import it
        (dict(type=''), None),
        ({}, None),
        (None, None),
    ],
)
def test_a_type_is_a_class_or_its_name(settings, expected):
    assert class_of(settings, MODELS) is expected


def test_a_subclass_is_what_its_base_is():
    assert is_a(dict(type='MainProcessLoggerHook'), HOOKS, LoggerHook)
    assert not is_a(dict(type='LoggerHook'), HOOKS, MainProcessLoggerHook)
    assert not is_a(dict(type='Unknown'), HOOKS, LoggerHook)


@pytest.mark.parametrize(
    ('kind', 'line'),
    [
        ('PSPNek', "neck.type: no 'PSPNek' in mmseg's registry of models; did you mean PSPNeck"),
        ('../x', "neck.type: no '../x' in mmseg's registry of models; expected a registered comp"),
        (['PSPNeck'], "neck.type=['PSPNeck']: expected the name of a model"),
    ],
)
def test_an_unknown_type_is_told_with_the_nearest(kind, line):
    assert str(unknown_type('neck', dict(type=kind), MODELS)).startswith(line)


def test_a_package_that_cannot_be_imported_is_told(monkeypatch, tmp_path):
    tmp_path.joinpath('broken.py').write_text('import json\njson.loads("{")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(MODELS, 'get', lambda _: importlib.import_module('broken'))
    problem = str(unknown_type('neck', dict(type='broken.Neck'), MODELS))
    assert problem.startswith('neck.type: broken cannot be imported (JSONDecodeError: ')


def test_arguments_are_listed():
    assert takes(class_of(dict(type='SGD'), OPTIMIZERS)).startswith('what SGD takes: params, lr')
    assert takes(SGD) == takes(class_of(dict(type='SGD'), OPTIMIZERS))
    assert takes(SGD, 'momentun') == 'did you mean momentum?'
