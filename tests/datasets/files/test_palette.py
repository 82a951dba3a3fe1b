import pytest
from mmseg.utils import get_classes, get_palette

from mmseg_cct.datasets.files.palette import chosen_colours, class_colours
from mmseg_cct.errors import UserError


def test_any_number_of_classes_has_different_colours_whatever_their_number():
    names = [str(number) for number in range(255)]
    colours = class_colours(names)
    assert len(set(colours)) == 255 and colours[:20] == class_colours(names[:20])
    assert all(0 <= value <= 255 for colour in colours for value in colour)


def test_classes_of_cityscapes_have_its_colours_and_no_two_classes_share_one():
    names = get_classes('cityscapes')
    assert [list(colour) for colour in class_colours(names)] == get_palette('cityscapes')
    colours = class_colours(['vegetation', 'crack', 'Vegetation', 'Traffic_Sign', 'background'])
    assert colours[0] == (107, 142, 35) and colours[3:] == [(220, 220, 0), (0, 0, 0)]
    assert len(set(colours)) == 5


def test_a_file_or_a_data_set_chooses_colours(tmp_path):
    file = tmp_path / 'colours.json'
    file.write_text('{"b": [1, 2, 255], "other": [0, 0, 0]}')
    assert chosen_colours(str(file), ['a', 'b'])[1] == (1, 2, 255)
    assert chosen_colours('ade', ['crack', 'sky'])[1] == (6, 230, 230)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (None, r'cannot be read \(No such file'),
        ('{', 'JSONDecodeError'),
        ('{"c": [1, 2, 3]}', r'no colours of the classes \(a, b\)'),
        ('{"a": [1, 2, 256]}', r'a: \[1, 2, 256\]; expected \[r, g, b\] from 0 to 255'),
    ],
)
def test_a_file_without_colours_is_named(content, message, tmp_path):
    file = tmp_path / 'colours.json'
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=rf'colours\.json: {message}'):
        chosen_colours(str(file), ['a', 'b'])
