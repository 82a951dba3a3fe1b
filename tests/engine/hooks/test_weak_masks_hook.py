import math
from types import SimpleNamespace

import numpy as np
import pytest
from folders import save
from PIL import Image
from spoil_masks import spoil
from torch import nn
from trees import Tree

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.engine.hooks import WeakMasksHook
from mmseg_cct.engine.hooks.weak_masks_hook import mask_precision
from mmseg_cct.engine.labels_record import Labels, write_labels
from mmseg_cct.errors import UserError
from mmseg_cct.models import WeakCrossEntropy


@pytest.fixture
def tree(tmp_path):
    """Labelled images of large regions, whose weak masks are their masks; one more mask."""
    tree, rng = Tree(tmp_path / 'set'), np.random.default_rng(0)
    for name in tree.labeled_names:
        mask = rng.permuted([0, 0, 1, 1, 2, 2]).astype(np.uint8).reshape(2, 3)
        mask = mask.repeat(8, 0).repeat(8, 1)
        mask[0] = 255
        save(tree.mask(name), mask)
        save(tree.root / f'weak/{name}.png', np.where(mask == 255, 0, mask).astype(np.uint8))
    save(tree.root / 'weak/u0.png', np.zeros((16, 24), np.uint8))
    return tree


def before_train(tree, *losses, unlabeled=True, weak_masks=True):
    """The runner after the hook."""
    pairs = SemiSegDataset(
        tree.config('labeled'),
        tree.config('unlabeled') if unlabeled else None,
        weak_masks=str(tree.root / 'weak') if weak_masks else None,
    )
    model = nn.Sequential(nn.Linear(1, 1), *losses)
    loader = SimpleNamespace(dataset=pairs)
    runner = SimpleNamespace(train_dataloader=loader, model=model)
    WeakMasksHook().before_train(runner)


def test_a_class_that_is_more_wrong_than_right_is_left_out_as_by_a_naive_count(tree):
    for number, name in enumerate(tree.labeled_names):
        path = tree.root / f'weak/{name}.png'
        confused = np.array([1, 0, 2], np.uint8)[np.array(Image.open(path))]
        save(path, spoil(confused, 3, 0.5, seed=number))
    loss = WeakCrossEntropy()
    before_train(tree, loss)
    area, right = np.zeros((3, 3)), np.zeros((3, 3))
    for number, name in enumerate(tree.labeled_names):
        true = np.array(Image.open(tree.mask(name)))
        mask = np.array(Image.open(tree.root / f'weak/{name}.png'))
        for a, b in zip(true.flat, mask.flat):
            if a != 255:
                area[number, b] += 1
                right[number, b] += a == b
    upper = mask_precision(area, right)[1]
    expected = [float(value >= 0.5) for value in upper]
    assert loss.class_weight.tolist() == expected and {*expected} == {0, 1}


def test_without_an_overlap_all_weigh_the_same(tree, messages):
    for name in tree.labeled_names:
        (tree.root / f'weak/{name}.png').unlink()
    loss = WeakCrossEntropy()
    before_train(tree, loss)
    assert loss.class_weight is None and len(messages) == 2


@pytest.mark.parametrize('number', [0, 1, 3])
def test_images_that_made_the_masks_do_not_tell_how_right_they_are(tree, messages, number):
    """Masks of labelled images are right where a network has learned from them, else wrong."""
    for name in tree.labeled_names[number:]:
        path = tree.root / f'weak/{name}.png'
        save(path, np.array([1, 0, 2], np.uint8)[np.array(Image.open(path))])
    trained = [str(tree.image(name)) for name in tree.labeled_names[:number]]
    write_labels(tree.root / 'weak', Labels(trained, 4))
    loss = WeakCrossEntropy()
    before_train(tree, loss)
    weight = None if loss.class_weight is None else loss.class_weight.tolist()
    assert weight == (None if number == 3 else [0, 0, 1])
    assert any('not compared' in line for line in messages) == bool(number)


def test_a_class_that_no_mask_shows_is_kept(tree):
    for name in tree.labeled_names:
        path = tree.root / f'weak/{name}.png'
        mask = np.array(Image.open(path))
        save(path, np.where(mask == 2, 255, mask).astype(np.uint8))
    loss = WeakCrossEntropy()
    before_train(tree, loss)
    assert loss.class_weight.tolist() == [1, 1, 1]


def test_what_learns_from_no_mask_is_named(tree):
    before_train(tree, unlabeled=False)  # the supervised baseline
    for settings in ((), (WeakCrossEntropy(),)):
        with pytest.raises(UserError) as error:
            before_train(tree, *settings, weak_masks=not settings)
        assert error.value.problems[0].key == 'WeakMasksHook'


def naive(areas, rights, z):
    """Precision and its upper end of one class, from one number an image."""
    total = sum(areas)
    if total == 0:
        return math.nan, math.nan
    p = sum(rights) / total
    k = total**2 / sum(area**2 for area in areas)
    # the end of Wilson's interval is the larger root q of (p - q)² = z² q (1 - q) / k
    a, b, c = 1 + z**2 / k, -(2 * p + z**2 / k), p**2
    return p, (-b + math.sqrt(b**2 - 4 * a * c)) / (2 * a)


@pytest.mark.parametrize('z', [0.5, 1.0, 2.0])
def test_precision_and_upper_end_are_those_of_a_naive_rewriting(z):
    rng = np.random.default_rng(0)
    area = rng.integers(0, 50, (6, 5)) * rng.integers(0, 2, (6, 5))
    area[:, 3] = 0
    right = rng.binomial(area, [0.1, 0.5, 0.9, 0.5, 1.0])
    actual = mask_precision(area, right, z)
    expected = [
        naive(*values.T.tolist(), z) for values in np.stack([area, right], 2).swapaxes(0, 1)
    ]
    np.testing.assert_allclose(np.stack(actual, 1), expected, rtol=1e-9)
