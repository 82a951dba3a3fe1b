import pytest

from mmseg_cct.config.text import read_config_text
from mmseg_cct.errors import UserError


def test_literals():
    text = "a = dict(b=[1, -2.5, (3,)], c={'d e': None})\ne = inf\nf = True\n"
    assert read_config_text(text, 'x').to_dict() == dict(
        a=dict(b=[1, -2.5, (3,)], c={'d e': None}), e=float('inf'), f=True
    )


@pytest.mark.parametrize(
    'line',
    [
        'import os',
        "a = __import__('os').system('true')",
        "a = open('x', 'w')",
        'a = [b for b in (1,)]',
        "a = f'{1}'",
        'a = dict(**b)',
        'a = dict(1)',
        'a = {**b}',
        'a, b = 1, 2',
        'a.b = 1',
        'a = b',
        'a = (',
        'a = ' + '[' * 500 + ']' * 500,
        "_base_ = 'x'\nexec('1')",
        'a = {[]: 1}',
        'a = 1\0',
    ],
)
def test_anything_else_is_refused(line):
    with pytest.raises(UserError, match=r'x.pth: its config is not a list of plain settings'):
        read_config_text(line, 'x.pth')
