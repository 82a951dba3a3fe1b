"""Values written as configs write them: what is read back is what was written."""

import pytest

from mmseg_cct.writer.config_text import Code, assignment


@pytest.mark.parametrize(
    'value',
    [
        ('one',),
        tuple(f'a {index}' * 9 for index in range(12)),  # names fill their lines
        {'a.b': {'lr_mult': 10}, 'c': None},
        {'deep': [{'long': f'{index}' * 30} for index in range(4)], 'empty': {}},
        'it\'s "so"',
    ],
)
def test_what_is_written_is_read_back(value):
    scope = {}
    text = assignment('name', value)
    exec(text, scope)
    assert scope['name'] == value
    assert max(map(len, text.splitlines())) <= 100


def test_what_fits_stays_on_its_line():
    assert assignment('a', dict(b=[1, 2], c=('x',))) == "a = dict(b=[1, 2], c=('x',))"
    assert assignment('a', [Code('*_base_.b')]) == 'a = [*_base_.b]'
    long = 'x' * 90
    assert assignment('a', dict(b=long, c=1)) == f"a = dict(\n    b='{long}',\n    c=1,\n)"
