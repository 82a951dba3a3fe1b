import pytest
import torch

from mmseg_cct.models.perturbations.detected_objects import bounding_boxes


def masks(*rectangles, num_images=1, size=(40, 50)):
    """Masks with rectangles (image, left, top, right, bottom)."""
    foreground = torch.zeros(num_images, *size, dtype=torch.bool)
    for image, left, top, right, bottom in rectangles:
        foreground[image, top:bottom, left:right] = True
    return foreground


def sorted_boxes(foreground, min_side=8):
    boxes = bounding_boxes(foreground.numpy().astype('uint8'), min_side)
    assert boxes.dtype == torch.int64 and boxes.shape[1:] == (5,)
    return sorted(tuple(box) for box in boxes.tolist())


L_SHAPE = [(0, 5, 30, 25, 32), (0, 5, 12, 8, 32)]
CORNERS = [(0, 0, 0, 10, 10), (0, 10, 10, 20, 20)]
SEVERAL = [(0, 1, 2, 12, 20), (0, 20, 2, 50, 11), (2, 0, 0, 50, 40)]


@pytest.mark.parametrize(
    ('rectangles', 'boxes'),
    [
        (SEVERAL, SEVERAL),
        ([], []),
        (L_SHAPE, [(0, 5, 12, 25, 32)]),
        (CORNERS, [(0, 0, 0, 20, 20)]),
        ([(0, 3, 3, 10, 33)], []),  # 7 pixels wide
        ([(0, 3, 3, 33, 10)], []),  # 7 pixels high
        ([(0, 3, 3, 11, 11)], [(0, 3, 3, 11, 11)]),
    ],
)
def test_every_object_but_specks_has_its_box(rectangles, boxes):
    assert sorted_boxes(masks(*rectangles, num_images=3)) == boxes
