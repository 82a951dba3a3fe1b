import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.labels import check_classes, is_background


@pytest.mark.parametrize(
    ('name', 'expected'),
    [('background', True), ('_background_', True), ('Background', True), ('ground', False)],
)
def test_the_background_has_several_spellings(name, expected):
    assert is_background(name) == expected


@pytest.mark.parametrize(
    ('classes', 'message'),
    [
        (('a', 'a'), 'expected every name once'),
        ('background', "classes='background': expected the class names"),
        ((), 'expected the class names'),
        (3, 'classes=3: expected the class names'),
        (('crack',), r"classes=\('crack',\): expected two names or more, that of the b"),
        (
            list(map(str, range(256))),
            r'classes=\(0, 1, 2, 3, \.\.\.\): 256 names; expected at most 255: MMSeg reads',
        ),
        (('a', '\udcff'), 'expected names in UTF-8'),
        (('a', 'b\x07'), r'b\\x07. has a control character'),
    ],
)
def test_names_that_do_not_fit_are_one_line(classes, message):
    with pytest.raises(UserError, match=message) as error:
        check_classes(classes)
    assert '\n' not in str(error.value)
    check_classes(['background', *map(str, range(254))])  # as many as masks can hold
