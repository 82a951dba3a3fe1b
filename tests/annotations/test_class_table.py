import pytest
from exports import write

from mmseg_cct.annotations.class_table import extended, read_table, write_table
from mmseg_cct.errors import UserError

RED = (255, 0, 0)


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = extended(None, {'Straße': RED, 'car': None}, 'ignore', {'Auto': 'car', 'Glas': None})
    write_table(tmp_path, table)
    assert read_table(tmp_path) == table
    assert list(table.ids.items()) == [('Straße', 0), ('car', 1)]
    assert table.colors['Straße'] == RED and len(set(table.colors.values())) == 2


def test_the_background_is_there_once():
    table = extended(None, {'car': None, '_background_': None}, 'background')
    assert list(table.ids) == ['car', '_background_']
    for undrawn, first, added in (
        ('background', ['background', 'car'], ['bus']),
        ('ignore', ['car'], ['Background', 'bus']),
    ):
        table = extended(None, {'car': None}, undrawn)
        assert list(table.ids) == first
        table = extended(table, {'Background': None, 'bus': None}, undrawn)
        assert list(table.ids) == [*first, *added]


@pytest.mark.parametrize('new_classes', [{'a\nb': None}, dict.fromkeys(map(str, range(256)))])
def test_a_class_is_a_line_of_text_and_one_of_255(new_classes):
    with pytest.raises(UserError):
        extended(None, new_classes, 'ignore')


def test_a_damaged_table_is_told(tmp_path):
    for color in [1, 2], [999, 0, 0]:
        write(tmp_path / 'classes.json', dict(classes=[dict(name='a', color=color)]))
        with pytest.raises(UserError, match=r'classes\.json'):
            read_table(tmp_path)
    for content in [], dict(classes=['a', 'a']):
        write(tmp_path / 'classes.json', content)
        with pytest.raises(UserError, match=r'classes\.json'):
            read_table(tmp_path)
