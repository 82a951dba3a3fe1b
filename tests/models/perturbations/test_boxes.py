import pytest
import torch

from mmseg_cct.models.perturbations.boxes import bounding_boxes


def masks(*rectangles, num_images=1, size=(40, 50)):
    """Masks with rectangles (image, left, top, right, bottom)."""
    foreground = torch.zeros(num_images, *size, dtype=torch.bool)
    for image, left, top, right, bottom in rectangles:
        foreground[image, top:bottom, left:right] = True
    return foreground


def sorted_boxes(foreground, min_side=8):
    boxes = bounding_boxes(foreground, min_side)
    assert boxes.dtype == torch.int64 and boxes.shape[1:] == (5,)
    return sorted(tuple(box) for box in boxes.tolist())


def test_finds_the_box_of_every_object_in_every_image():
    rectangles = [(0, 1, 2, 12, 20), (0, 20, 2, 50, 11), (2, 0, 0, 50, 40)]
    assert sorted_boxes(masks(*rectangles, num_images=3)) == rectangles


def test_a_box_holds_the_whole_of_a_shape():
    foreground = masks((0, 5, 30, 25, 32), (0, 5, 12, 8, 32))  # an L
    assert sorted_boxes(foreground) == [(0, 5, 12, 25, 32)]


def test_objects_that_touch_at_a_corner_are_one():
    foreground = masks((0, 0, 0, 10, 10), (0, 10, 10, 20, 20))
    assert sorted_boxes(foreground) == [(0, 0, 0, 20, 20)]


def test_an_object_inside_the_hole_of_another_has_its_own_box():
    foreground = masks((0, 0, 0, 50, 40))
    foreground[0, 5:35, 5:45] = False
    foreground[0, 15:25, 15:25] = True
    assert sorted_boxes(foreground) == [(0, 0, 0, 50, 40), (0, 15, 15, 25, 25)]


@pytest.mark.parametrize(('width', 'height', 'found'), [(8, 8, 1), (7, 30, 0), (30, 7, 0)])
def test_leaves_specks_out(width, height, found):
    foreground = masks((0, 3, 3, 3 + width, 3 + height))
    assert len(bounding_boxes(foreground, min_side=8)) == found
    assert len(bounding_boxes(foreground, min_side=7)) == 1


def test_no_object_gives_no_box():
    assert sorted_boxes(masks(num_images=2)) == []
