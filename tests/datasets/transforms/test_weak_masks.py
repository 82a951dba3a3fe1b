import json
from contextlib import nullcontext

import cv2
import numpy as np
import pytest
import torch
from folders import save
from PIL import Image
from trees import CLASSES

from mmseg_cct.datasets import PairDraw, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs

DRAW = PairDraw(labeled=0, unlabeled=1, labeled_seed=3, unlabeled_seed=4)


@pytest.fixture
def folder(tree):
    """Weak masks of all unlabelled images but u3."""
    for name in tree.unlabeled_names[:3]:
        ids = np.random.default_rng(len(name)).integers(0, 3, (16, 24)).astype(np.uint8)
        save(tree.root / f'weak/{name}.png', ids)
    return tree.root / 'weak'


def build(tree, folder, **settings):
    branches = tree.config('labeled'), tree.config('unlabeled')
    return SemiSegDataset(*branches, weak_masks=str(folder), **settings)


def test_masks_come_with_the_unlabelled_images_and_change_nothing_else(tree, folder):
    views = dict(strong_views=dict(type='StrongViews'))
    plain = SemiSegDataset(tree.config('labeled'), tree.config('unlabeled'), **views)[DRAW]
    item = build(tree, folder, **views)[DRAW]
    assert item['inputs'].keys() == plain['inputs'].keys()
    assert all(torch.equal(item['inputs'][name], plain['inputs'][name]) for name in plain['inputs'])
    sample = item['data_samples']['unlabeled']
    assert sample.pseudo_sem_seg.data.unique().tolist() == [0, 1, 2]
    assert set(plain['data_samples']['unlabeled'].metainfo) <= set(sample.metainfo)
    assert 'pseudo_sem_seg' not in item['data_samples']['labeled']
    assert build(tree, folder).weak_masks == str(folder)


def test_an_image_without_a_mask_has_no_label(tree, folder):
    pairs = build(tree, folder)
    check_pairs(pairs)
    labels = pairs[DRAW._replace(unlabeled=3)]['data_samples']['unlabeled'].pseudo_sem_seg.data
    assert (labels == 255).all()


@pytest.mark.parametrize('beside', [False, True])
def test_classes_in_another_order_are_matched_by_name(tree, folder, beside):
    expected = build(tree, folder)[DRAW]['data_samples']['unlabeled'].pseudo_sem_seg.data
    names = [CLASSES[2], 'no class here', *CLASSES[:2]]
    table = (folder.parent if beside else folder) / 'classes.json'
    table.write_text(json.dumps(dict(classes=[*names[:2], *(dict(name=n) for n in names[2:])])))
    for path in folder.glob('*.png'):
        save(path, np.array([2, 3, 0], np.uint8)[cv2.imread(str(path), cv2.IMREAD_UNCHANGED)])
    actual = build(tree, folder)[DRAW]['data_samples']['unlabeled'].pseudo_sem_seg.data
    assert torch.equal(actual, expected)
    save(folder / 'u1.png', np.full((16, 24), 1, np.uint8))
    labels = build(tree, folder)[DRAW]['data_samples']['unlabeled'].pseudo_sem_seg.data
    assert (labels == 255).all()


@pytest.mark.parametrize('text', ['x', '{"classes": ["Thing"]}'])
def test_a_table_without_our_classes_is_named(tree, folder, text):
    (folder / 'classes.json').write_text(text)
    with pytest.raises(UserError) as error:
        build(tree, folder)
    assert str(error.value).startswith(f'{folder}/classes.json: ')


def test_one_bit_and_upper_case_are_read(tree, folder):
    (folder / 'u1.png').unlink()
    bits = np.random.default_rng(0).random((16, 24)) > 0.5
    Image.fromarray(bits).save(folder / 'u1.PNG')
    pairs = build(tree, folder)
    check_pairs(pairs)
    loader = pairs.unlabeled.pipeline.transforms[1]
    labels = loader.read(dict(img_path=str(tree.image('u1')), ori_shape=bits.shape))
    assert np.array_equal(labels, bits)


@pytest.mark.parametrize('second', [0, 255])
def test_masks_are_judged_as_a_whole_like_labelled_ones(tree, folder, second, messages):
    for path in folder.glob('*.png'):
        save(path, np.array([[255] * 12 + [second] * 12] * 16, np.uint8))
    with pytest.raises(UserError) if second == 255 else nullcontext() as error:
        check_pairs(build(tree, folder))
    line = str(error.value) if error else messages[0]
    assert line.startswith('weak_masks: ')
    assert ('255' if second == 255 else 'thing, other') in line


def test_palettes_in_another_order_are_named(tree, folder):
    for order, name in enumerate(('u0', 'u1')):
        image = Image.open(folder / f'{name}.png')
        image.putpalette([[0, 0, 9, 9, 9, 0], [9, 9, 0, 0, 0, 9]][order] + [1, 2, 3] * 254)
        image.save(folder / f'{name}.png')
    with pytest.raises(UserError) as error:
        check_pairs(build(tree, folder))
    # which of them comes second is up to the threads
    assert error.value.problems[0].key in [str(folder / f'{name}.png') for name in ('u0', 'u1')]


def test_masks_of_other_names_are_an_error(tree, folder):
    for path in folder.glob('*.png'):
        path.rename(path.with_stem(f'{path.stem}_mask'))
    with pytest.raises(UserError, match='no mask of an unlabelled image') as error:
        check_pairs(build(tree, folder))
    assert error.value.problems[0].key == str(folder)
