import cv2
import numpy as np
import pytest
from mmseg.utils import get_classes, get_palette

from mmseg_cct.datasets.files.palette import chosen_colors, class_colors
from mmseg_cct.errors import UserError


def test_any_number_of_classes_has_different_colors_whatever_their_number():
    names = [str(number) for number in range(255)]
    colors = class_colors(names)
    assert len(set(colors)) == 255 and colors[:20] == class_colors(names[:20])
    assert all(0 <= value <= 255 for color in colors for value in color)


def test_classes_of_cityscapes_have_its_colors_and_no_two_classes_share_one():
    names = get_classes('cityscapes')
    assert [list(color) for color in class_colors(names)] == get_palette('cityscapes')
    colors = class_colors(['vegetation', 'crack', 'Vegetation', 'Traffic_Sign', 'background'])
    assert colors[0] == (107, 142, 35) and colors[3:] == [(220, 220, 0), (0, 0, 0)]
    assert len(set(colors)) == 5


@pytest.mark.parametrize(
    'names',
    [
        ['drivable', 'other ground', 'living thing', 'two-wheeler', 'sky', 'road', 'car'],
        ['person', 'wall', 'vegetation', 'dead', 'standing', 'lying', 'background'],
        [str(number) for number in range(20)],
    ],
)
def test_colors_are_far_apart_to_the_eye_also_from_known_ones(names):
    rgb = np.array([*class_colors(names), (255, 255, 255)], np.float32)
    lab = cv2.cvtColor(rgb[None] / 255, cv2.COLOR_RGB2Lab)[0]
    distances = np.linalg.norm(lab[:, None] - lab, axis=2) + 1000 * np.eye(len(lab))
    assert distances.min() > 35


def test_a_file_or_a_data_set_chooses_colors(tmp_path):
    file = tmp_path / 'colors.json'
    file.write_text('{"b": [1, 2, 255], "other": [0, 0, 0]}')
    assert chosen_colors(str(file), ['a', 'b'])[1] == (1, 2, 255)
    assert chosen_colors('ade', ['crack', 'sky'])[1] == (6, 230, 230)


@pytest.mark.parametrize('content', [None, '{', '{"c": [1, 2, 3]}', '{"a": [1, 2, 256]}'])
def test_a_file_without_colors_is_named(content, tmp_path):
    file = tmp_path / 'colors.json'
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=f'^{file}'):
        chosen_colors(str(file), ['a', 'b'])
