"""The order of the classes is in hooks/test_preflight_hook.py."""

from types import SimpleNamespace

import pytest

from mmseg_cct.engine.class_checks import (
    require_heads_ignore,
    require_ignored,
    require_num_classes,
)
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    ('head', 'num_classes', 'fits'),
    [
        ('decode_head', 2, True),
        ('decode_head', 1, True),  # one output for both classes
        ('decode_head', 3, False),
        ('head', 2, True),  # of a classifier
        ('head', 1, False),
        ('head', 3, False),
    ],
)
def test_a_head_has_an_output_for_each_class(head, num_classes, fits):
    model = SimpleNamespace(**{head: SimpleNamespace(num_classes=num_classes)})
    require_num_classes(model, {}, 'the set')  # it names no classes
    if fits:
        require_num_classes(model, dict(classes=['a', 'b']), 'the set')
    else:
        expected = rf'^model\.{head}\.num_classes={num_classes}: expected 2, .* the set \(a, b\)$'
        with pytest.raises(UserError, match=expected):
            require_num_classes(model, dict(classes=['a', 'b']), 'the set')


@pytest.mark.parametrize(
    ('of_set', 'of_part', 'fits'),
    [
        (255, 255, True),
        (254, 254, True),
        (254, None, True),  # a part without one
        (255, 0, True),  # MMSeg's default, of masks that may have no 255
        (254, 255, False),
    ],
)
def test_what_the_masks_mark_as_ignored_is_ignored(of_set, of_part, fits):
    part = SimpleNamespace(ignore_index=of_part)
    labeled = SimpleNamespace(ignore_index=of_set)
    sets = SimpleNamespace(datasets=[SimpleNamespace(), labeled])
    plain = SimpleNamespace(decode_head=part), SimpleNamespace(labeled=labeled)
    several = tuple(SimpleNamespace(domains=dict(b=each)) for each in plain)
    checks = {
        'test_evaluator=test': lambda: require_ignored(sets, 'test', part, 'test_evaluator'),
        'val_evaluator=val.domains.b': lambda: require_ignored(
            SimpleNamespace(domains=dict(b=labeled), datasets=[labeled]),
            'val',
            part,
            'val_evaluator',
        ),
        'model.decode_head=train.labeled': lambda: require_heads_ignore(*plain, 'train'),
        'model.domains.b.decode_head=train.domains.b.labeled': lambda: require_heads_ignore(
            *several, 'train'
        ),
    }
    for keys, check in checks.items():
        if fits:
            check()
            continue
        place, key = keys.split('=')
        expected = f'^{place}.ignore_index={of_part}: expected {of_set}, {key}.ignore_index,'
        with pytest.raises(UserError, match=expected):
            check()
