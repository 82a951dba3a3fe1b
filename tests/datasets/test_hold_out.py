import re

import pytest

from mmseg_cct.datasets.hold_out import hold_out, one_sided


def sides(held, labels):
    return one_sided(
        *([labels[name] for name in labels if (name in held) == is_held] for is_held in (0, 1))
    )


def beside(held, count):
    """Number of held-out frames within two frames of a frame to train on."""
    numbers = {int(re.findall(r'\d+', name)[0]) for name in held}
    trained = set(range(count)) - numbers
    return sum(bool(trained & set(range(n - 2, n + 3))) for n in numbers)


def frames(count, name='scene_{:03}', **frames_of_class):
    """Frames of a scene; classes are in the frames of a range."""
    return {
        name.format(n): frozenset({0, *(int(c[1:]) for c, r in frames_of_class.items() if n in r)})
        for n in range(count)
    }


@pytest.mark.parametrize(
    'name', ['scene_{:03}', 'scene_{}', 'f{}_leftImg8bit', 'f{0}_jpg.rf.{0:x}0a1b2c3d']
)
def test_frames_of_a_scene_stay_together(name):
    held = hold_out(frames(100, name))
    assert len(held) == 20 and beside(held, 100) == 2


@pytest.mark.parametrize('rare', [range(40, 46), range(2), range(0, 100, 5), (7, 93)])
def test_a_rare_class_is_on_both_sides(rare):
    labels = frames(100, c1=rare)
    held = hold_out(labels)
    assert sides(held, labels) == (set(), set()) and 16 <= len(held) <= 24
    assert beside(held, 100) <= 10


def test_a_class_of_one_image_is_trained():
    labels = frames(20, c1=[0], c2=[19])
    assert sides(hold_out(labels), labels) == ({1, 2}, set())


def test_scenes_are_not_mixed_and_the_choice_is_the_same_in_any_order():
    labels = {f'{scene}/{n}': frozenset({0}) for scene in 'abcde' for n in range(4)}
    assert hold_out(labels) == ['a/0', 'a/1', 'a/2', 'a/3']
    assert hold_out(dict(reversed(labels.items()))) == hold_out(labels)


def test_roboflow_copies_of_a_photo_are_on_one_side():
    labels = {f'IMG_{n % 6}_jpg.rf.{n * 7919:06x}': frozenset({0, n % 3}) for n in range(18)}
    held = hold_out(labels)
    assert 3 <= len(held) <= 6
    held_photos, trained = ({n.split('.rf.')[0] for n in s} for s in (held, labels.keys() - held))
    assert not held_photos & trained
