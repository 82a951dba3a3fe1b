from types import SimpleNamespace

import pytest
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from torch.nn import ModuleDict

from mmseg_cct.preflight.classes import (
    head_ignore_problems,
    output_problems,
    warn_of_losses_that_count_ignored_pixels,
)

METAINFO = dict(classes=('a', 'b'))


@pytest.mark.parametrize(
    ('head', 'num_classes', 'fits'),
    [
        ('decode_head', 2, True),
        ('decode_head', 1, True),  # one output for both classes
        ('decode_head', 3, False),
        ('head', 1, False),  # of a classifier
    ],
)
def test_a_head_has_an_output_for_each_class(head, num_classes, fits):
    model = SimpleNamespace(**{head: SimpleNamespace(num_classes=num_classes)})
    assert not [*output_problems(model, {}, 'the set')]  # it names no classes
    found = [problem.key for problem in output_problems(model, METAINFO, 'the set')]
    assert found == [f'model.{head}.num_classes={num_classes}'] * (not fits)


@pytest.mark.parametrize(
    ('ignored', 'padded', 'keys', 'told'),
    [
        (255, 255, [], []),
        (1, 1, ['decode_head.ignore_index=1'], []),
        (255, 0, [], ['data_preprocessor.seg_pad_val=0']),
        (None, 0, [], []),  # a part without one
    ],
)
@pytest.mark.parametrize('place', ['', '.domains.x'])
def test_classes_that_are_ignored_and_padding_that_counts_are_told(
    messages, ignored, padded, keys, told, place
):
    model = SimpleNamespace(
        decode_head=SimpleNamespace(ignore_index=ignored),
        data_preprocessor=SimpleNamespace(seg_pad_val=padded),
    )
    dataset = SimpleNamespace(labeled=SimpleNamespace(metainfo=METAINFO))
    if place:
        preprocessor = SimpleNamespace(domains=dict(x=model.data_preprocessor))
        model = SimpleNamespace(domains=dict(x=model), data_preprocessor=preprocessor)
        dataset = SimpleNamespace(domains=dict(x=dataset))
    problems = [problem.key for problem in head_ignore_problems(model, dataset)]
    assert problems == [f'model{place}.{key}' for key in keys]
    assert [line.split(':')[0] for line in messages] == [f'model{place}.{key}' for key in told]


@pytest.mark.parametrize(
    ('loss', 'counts'),
    [
        (dict(type='DiceLoss'), True),
        ([dict(type='CrossEntropyLoss'), dict(type='DiceLoss', use_sigmoid=False)], True),
        (dict(type='BatchLovasz'), False),
    ],
)
def test_a_loss_that_learns_from_ignored_pixels_is_told(messages, loss, counts):
    head = dict(type='FCNHead', in_channels=4, channels=4, num_classes=2, loss_decode=loss)
    with DefaultScope.overwrite_default_scope('mmseg'):
        warn_of_losses_that_count_ignored_pixels(ModuleDict(dict(decode_head=MODELS.build(head))))
    assert [line.split(':')[0] for line in messages] == ['model.decode_head.loss_decode'] * counts


def test_a_head_of_heads_has_no_loss_of_its_own(messages):
    head = MODELS.build(dict(type='mmseg.FCNHead', in_channels=4, channels=4, num_classes=2))
    del head.loss_decode  # as K-Net's
    warn_of_losses_that_count_ignored_pixels(ModuleDict(dict(decode_head=head)))
    assert not messages
