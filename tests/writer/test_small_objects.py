import pytest

from mmseg_cct.writer.small_objects import SmallObjects


def objects_of(width, size=(512, 336), images=(3000, 2000), may_crop=False):
    return SmallObjects(dict(dot=width, sea=900.0), images, size, 8, may_crop)


def test_objects_that_would_vanish_are_shown_in_windows_at_their_cost():
    objects = objects_of(5.0, may_crop=True)
    assert objects.in_windows
    assert objects.windows == dict(mode='slide', crop_size=(336, 512), stride=(224, 341))
    # (2000 - 336) / 224 and (3000 - 512) / 341, each rounded up, and one more
    assert "test_cfg.mode='slide'), 81 an image" in objects.note()
    assert 'in pixels: dot 5.0; narrower than 8' in objects.warning()


@pytest.mark.parametrize(
    ('width', 'size', 'expected'),
    [
        (5.0, (512, 336), 'they vanish; without --size the config trains on crops'),
        (40.0, (512, 336), 'dot 6.7; narrower than 8, the stride of the network; a larger'),
        (1.0, (3000, 2000), 'they vanish; a larger --size'),
        (48.0, (512, 336), None),
    ],
)
def test_whole_images_of_a_size(width, size, expected):
    line = objects_of(width, size).warning()
    assert line is None if expected is None else expected in line


def test_it_is_said_by_how_much_images_shrink():
    line = objects_of(50.0).note()
    assert line == 'images of 3000x2000 are resized to 512x336, 0.17 of their width (--size)'
    assert objects_of(50.0, (512, 336), (515, 340)).note() is None  # rounded
