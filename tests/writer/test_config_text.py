import pytest

from mmseg_cct.writer.config_text import assignment


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
