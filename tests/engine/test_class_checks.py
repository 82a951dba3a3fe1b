"""The order of the classes is in hooks/test_preflight_hook.py."""

from types import SimpleNamespace

import pytest

from mmseg_cct.engine.class_checks import require_num_classes
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
