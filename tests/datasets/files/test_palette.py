"""Colours that one recognises, and others that are told apart."""

import itertools
import json

import cv2
import numpy as np
import pytest
from mmseg.utils import get_classes, get_palette

from mmseg_cct.datasets.files.palette import chosen_colours, class_colours, distinct_colours
from mmseg_cct.errors import UserError


def lab(colours):
    rgb = np.array(colours, np.float32)[None] / 255
    return cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)[0]


def smallest_distance(colours):
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab(colours), 2))


# in units of CIELAB, of which 2.3 is a just noticeable difference
@pytest.mark.parametrize('count, least', [(8, 60), (20, 35), (150, 10)])
def test_any_two_colours_are_told_apart(count, least):
    colours = distinct_colours(count)
    assert len(colours) == count
    assert smallest_distance(colours) > least
    lightness = lab(colours)[:, 0]
    assert lightness.min() > 8 and lightness.max() < 93  # neither near black nor near white
    assert colours[:7] == distinct_colours(7)  # whatever the number
    if count == 8:
        assert smallest_distance(colours + distinct_colours(8, colours)) > 35


def test_the_classes_of_cityscapes_have_its_colours_by_the_names_of_camvid_and_voc_too():
    names = get_classes('cityscapes')
    assert [list(colour) for colour in class_colours(names)] == get_palette('cityscapes')
    common = ['Road', 'SignSymbol', 'Trees', 'Pedestrian', 'motorbike', 'bus']
    known = dict(zip(names, get_palette('cityscapes')))
    same = ['road', 'traffic sign', 'vegetation', 'person', 'motorcycle', 'bus']
    assert [list(colour) for colour in class_colours(common)] == [known[name] for name in same]


def test_no_two_classes_share_a_colour():
    colours = class_colours(['tree', 'crack', 'vegetation', 'rust', 'background'])
    assert colours[0] == (107, 142, 35) and colours[4] == (0, 0, 0)
    assert smallest_distance(colours) > 35


@pytest.mark.parametrize(
    'content',
    [
        {'b': '#0102ff', 'other': [0, 0, 0]},
        [[9, 9, 9], [1, 2, 255]],
        {'classes': [{'id': 0, 'name': 'b', 'color': [1, 2, 255]}], 'rest': None},
    ],
)
def test_a_file_or_a_data_set_chooses_colours(content, tmp_path):
    file = tmp_path / 'colours.json'
    file.write_text(json.dumps(content))
    assert chosen_colours(str(file), ['a', 'b'])[1] == (1, 2, 255)
    assert chosen_colours('ade', ['crack', 'sky'])[1] == (6, 230, 230)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (None, r'cannot be read \(No such file.*; expected a JSON'),
        ('{', 'JSONDecodeError: .*; expected a JSON file of colours, or one of cityscapes'),
        ('{"c": [1, 2, 3]}', r'no colours of the classes \(a, b\); expected them by name, or a'),
        ('{"a": [1, 2, 256]}', r"a: \[1, 2, 256\]; expected \[r, g, b\] from 0 to 255, or '#rr"),
    ],
)
def test_a_file_without_colours_is_named(content, message, tmp_path):
    file = tmp_path / 'colours.json'
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=rf'colours\.json: {message}'):
        chosen_colours(str(file), ['a', 'b'])
