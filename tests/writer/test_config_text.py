"""Values written as configs write them: what is read back is what was written."""

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.writer.config_text import Code, assignment, write_config


@pytest.mark.parametrize(
    'value',
    [
        (),
        ('one',),
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


def test_what_mmengine_would_replace_is_not_written(tmp_path):
    text = assignment('classes', ('road', '{{ fileDirname }}'))
    with pytest.raises(UserError, match=r'^\{\{ fileDirname \}\}.*: mmengine would replace it'):
        write_config(tmp_path / 'a.py', text)
    assert not list(tmp_path.iterdir())
