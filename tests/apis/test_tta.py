"""TTA at the size of the test."""

import logging

import pytest
from mmengine.logging import MMLogger

from mmseg_cct.apis.test import follow_test_size

LOAD, PACK = dict(type='LoadImageFromFile'), dict(type='PackSegInputs')
RESIZE = dict(type='Resize', scale=(320, 160), keep_ratio=True)
FLIPS = [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)]


def tta(*resizes, before=()):
    return [LOAD, *before, dict(type='TestTimeAug', transforms=[list(resizes), FLIPS, [PACK]])]


@pytest.fixture
def warnings(monkeypatch):
    found = []
    logger = MMLogger.get_current_instance()
    monkeypatch.setattr(logger, 'log', lambda level, message: found.append((level, message)))
    return found


def test_factors_scale_the_size_of_the_test(warnings):
    factors = [dict(type='Resize', scale_factor=s) for s in (0.5, 1.5)]
    pipeline = tta(*factors)
    assert follow_test_size(pipeline, [LOAD, RESIZE, PACK]) == [LOAD, RESIZE, pipeline[1]]
    assert follow_test_size(pipeline, [LOAD, PACK]) == pipeline
    resized = tta(*factors, before=[RESIZE])
    assert follow_test_size(resized, [LOAD, RESIZE, PACK]) == resized
    assert not warnings


def test_sizes_much_larger_than_the_test_are_warned_of(warnings):
    fixed = tta(dict(type='Resize', scale=(480, 240)), dict(type='Resize', scale=(640, 320)))
    assert follow_test_size(fixed, [LOAD, RESIZE, PACK]) == fixed
    assert not warnings
    large = tta(dict(type='Resize', scale=(1280, 640)))
    assert follow_test_size(large, [LOAD, RESIZE, PACK]) == large
    ((level, message),) = warnings
    assert level == logging.WARNING
    assert 'longest side of up to 1280 pixels; the test to 320' in message


def test_a_pipeline_without_resizes_stays(warnings):
    assert follow_test_size([LOAD, PACK], [LOAD, RESIZE, PACK]) == [LOAD, PACK]
    assert follow_test_size(tta(), [LOAD, RESIZE, PACK]) == tta()
