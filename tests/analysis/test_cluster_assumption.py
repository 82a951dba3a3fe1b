"""Neighbour distances and class regions against values computed by hand and naive loops."""

import math

import pytest
import torch
import torch.nn.functional as F

from mmseg_cct.analysis.cluster_assumption import (
    class_regions,
    contrast,
    mean_neighbour_distance,
    ratio,
    resize_nearest,
    upsampled,
)


def two_regions():
    """Two slopes of 1 per column with a step of 5 between columns 2 and 3, and their labels."""
    column = torch.tensor([0.0, 1.0, 2.0, 7.0, 8.0, 9.0])
    features = column.expand(1, 4, 6)
    return features, (features[0] > 4).long()


def test_two_regions_give_the_value_computed_by_hand():
    features, labels = two_regions()
    distances = mean_neighbour_distance([features])
    # of 8 neighbours two lie in the same column, three on the left and three on the right
    assert distances[1, 1] == pytest.approx(6 * 1 / 8)
    assert distances[1, 2] == pytest.approx((3 * 5 + 3 * 1) / 8)
    assert distances[0, 2] == pytest.approx((2 * 5 + 2 * 1) / 5)  # the upper border has 5
    assert distances[0, 0] == pytest.approx(2 * 1 / 3)  # a corner 3

    boundary, inside = class_regions(labels, width=1)
    assert boundary[0].tolist() == [False, False, True, True, False, False]
    sums = contrast(distances, boundary, inside)
    on_boundary = (4 * 18 / 8 + 4 * 12 / 5) / 8
    within = (4 * 6 / 8 + 4 * 4 / 5 + 4 * 3 / 5 + 4 * 2 / 3) / 16
    assert (sums[0] / sums[1]).tolist() == pytest.approx([on_boundary, within])
    assert ratio(sums) == pytest.approx(on_boundary / within)


def naive_distance(channels, patch_size):
    """Cuts out every patch, as far as both of a pair lie in the image, and compares it."""
    _, height, width = channels.shape
    offsets = range(-(patch_size // 2), patch_size - patch_size // 2)
    result = torch.zeros(height, width)

    def inside(y, x):
        return 0 <= y < height and 0 <= x < width

    for y in range(height):
        for x in range(width):
            distances = []
            for dy, dx in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]:
                if not inside(y + dy, x + dx):
                    continue
                squares = [
                    (channels[:, y + u, x + v] - channels[:, y + dy + u, x + dx + v]).square().sum()
                    for u in offsets
                    for v in offsets
                    if inside(y + u, x + v) and inside(y + dy + u, x + dx + v)
                ]
                distances.append((torch.stack(squares).mean() * patch_size**2).sqrt())
            result[y, x] = torch.stack(distances).mean()
    return result


@pytest.mark.parametrize('patch_size', [1, 2, 3, 4])
@pytest.mark.parametrize('channels', [1, 2, 3])
def test_distances_equal_those_of_cut_out_patches(patch_size, channels):
    torch.manual_seed(0)
    image = torch.randn(3, 6, 5)
    actual = mean_neighbour_distance(image.split(channels), patch_size)
    torch.testing.assert_close(actual, naive_distance(image, patch_size))


def test_features_are_resized_in_parts():
    torch.manual_seed(0)
    features = torch.randn(7, 3, 4)
    parts = list(upsampled(features, (12, 16), channels=3))
    assert [len(part) for part in parts] == [3, 3, 1]
    whole = F.interpolate(features[None], (12, 16), mode='bilinear')[0]
    torch.testing.assert_close(torch.cat(parts), whole)


def test_ignored_pixels_are_no_class():
    row = torch.tensor([0, 0, 0, 255, 255, 255, 0, 0, 255, 1, 1, 1, 1])
    boundary, inside = (r[0].long().tolist() for r in class_regions(row[None], width=1))
    # the hole in class 0 makes its surroundings neither; the contour between 0 and 1 is boundary
    assert boundary == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert inside == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    boundary, _ = class_regions(row[None], width=2)
    assert boundary[0].long().tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ('sums', 'expected'),
    [
        ([[6, 8], [6, 4]], 0.5),
        ([[0, 3], [0, 3]], math.nan),  # no boundary
        ([[3, 0], [3, 0]], math.nan),  # nothing inside
        ([[3, 0], [3, 3]], math.inf),
    ],
)
def test_the_ratio_is_that_of_means_over_pixels(sums, expected):
    assert ratio(torch.tensor(sums, dtype=torch.double)) == pytest.approx(expected, nan_ok=True)


def test_labels_keep_their_type_and_no_new_ones_arise():
    labels = torch.tensor([[[0, 255], [3, 7]]])
    assert resize_nearest(labels, (4, 2)).tolist() == [[0, 255], [0, 255], [3, 7], [3, 7]]
    assert resize_nearest(labels, (2, 2)).dtype == labels.dtype
    # each is that at the centre
    assert resize_nearest(torch.arange(6)[None, None], (1, 2)).tolist() == [[1, 4]]
