import pytest

from mmseg_cct.writer.small_objects import SmallObjects


def objects_of(width, size=(512, 336), images=(3000, 2000)):
    return SmallObjects(dict(dot=width, sea=900.0), images, size, stride=8)


def test_objects_that_vanish_come_with_what_keeps_them_and_its_cost():
    objects = objects_of(5.0)
    assert objects.lost == ['dot']
    assert objects.windows == dict(mode='slide', crop_size=(336, 512), stride=(224, 341))
    # (2000 - 336) / 224 and (3000 - 512) / 341, each rounded up, and one more
    assert objects.number_of_windows == 9 * 9
    vanish, narrow = objects.warnings(is_windowed=True)
    assert 'dot: objects are typically 5.0 pixels wide, 0.8 where the network sees them' in vanish
    assert "test_cfg.mode='slide'), 81 an image" in vanish
    assert narrow.startswith('dot: objects are typically 5.0 pixels wide, narrower than the stride')
    assert list(objects.notes(is_windowed=True)) == []


@pytest.mark.parametrize(
    ('width', 'size', 'expected'),
    [
        (5.0, (512, 336), 'where they vanish; without --size the config trains on crops'),
        (40.0, (512, 336), '6.7 where the network sees them, narrower than the stride'),
        (1.0, (3000, 2000), 'where they vanish; a larger --size magnifies them'),
        (48.0, (512, 336), None),
    ],
)
def test_whole_images_of_a_size(width, size, expected):
    lines = list(objects_of(width, size).warnings(is_windowed=False))
    assert (expected is None and lines == []) or (expected in lines[0] and len(lines) == 1)


def test_it_is_said_by_how_much_images_shrink():
    (line,) = objects_of(50.0).notes(is_windowed=False)
    assert line == 'images of 3000x2000 are resized to 512x336, 0.17 of their width (--size)'
    assert list(objects_of(50.0, (512, 336), (515, 340)).notes(is_windowed=False)) == []  # rounded
