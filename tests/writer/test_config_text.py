import pytest

from mmseg_cct.writer.config_text import assignment


@pytest.mark.parametrize(
    'value',
    [
        ('one',),
        {'a.b': {'lr_mult': 10}, 'c': None},
        {'deep': [{'names': ('a', 'b')}, {}, []]},
        'it\'s "so"',
    ],
)
def test_what_is_written_is_read_back(value):
    scope = {}
    exec(assignment('name', value), scope)
    assert scope['name'] == value
