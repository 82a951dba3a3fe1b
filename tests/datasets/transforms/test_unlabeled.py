import cv2
import numpy as np
import pytest
import torch
from folders import save

from mmseg_cct.datasets import LoadPseudoLabels, PairDraw, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs

DRAW = PairDraw(labeled=0, unlabeled=1, labeled_seed=3, unlabeled_seed=4)
LOAD, MARK = dict(type='LoadImageFromFile'), dict(type='MarkValidPixels')
PACK, PACK_LABELS = dict(type='PackUnlabeledInputs'), dict(type='PackPseudoLabels')
PAD = dict(type='Pad', size=(30, 40), pad_val=dict(img=0, seg=255))
CROP, FLIP = dict(type='RandomCrop', crop_size=(7, 9)), dict(type='RandomFlip', prob=0.5)
DOUBLE = dict(type='Resize', scale=(48, 32), interpolation='nearest')


def build(tree, *steps, **options):
    """Pairs whose unlabelled images are the PNGs."""
    config = tree.config('unlabeled', img_suffix='.png', pipeline=[LOAD, *steps], **options)
    return SemiSegDataset(tree.config('labeled'), config)


def loading(tree):
    folders = dict(image_dir=f'{tree.root}/images', label_dir=f'{tree.root}/pseudo')
    return dict(type='LoadPseudoLabels', **folders)


def unlabeled(dataset, seed=4):
    """An image and its sample."""
    item = dataset[DRAW._replace(unlabeled_seed=seed)]
    assert 'gt_sem_seg' not in item['data_samples']['unlabeled']
    return item['inputs']['unlabeled'], item['data_samples']['unlabeled']


@pytest.fixture
def bright(tree):
    """The unlabelled images are bright: what is black has been filled."""
    for name in tree.unlabeled_names:
        image = np.random.default_rng(len(name)).integers(100, 256, (16, 24, 3), np.uint8)
        save(tree.root / f'images/{name}.png', image)
    return tree


@pytest.mark.parametrize(
    'steps',
    [
        [],
        [dict(PAD, pad_val=dict(img=0, seg=0))],
        [PAD, dict(type='RandomCrop', crop_size=(25, 25)), FLIP],
        [PAD, dict(type='Resize', scale=(80, 60), interpolation='nearest')],
        [dict(type='RandomRotate', prob=1.0, degree=(90, 90))],
    ],
)
def test_filled_pixels_are_not_valid(bright, steps):
    dataset = build(bright, MARK, *steps, PACK)
    for seed in range(6):
        image, sample = unlabeled(dataset, seed)
        valid = sample.valid_mask.data
        assert valid.dtype == torch.bool and valid.shape == (1, *image.shape[-2:])
        assert torch.equal(valid, image.amin(0, keepdim=True) > 50)
        assert valid.all() == (not steps)


@pytest.fixture
def labels(tree):
    """Pseudo labels of the unlabelled images: their blue channel in three classes, some ignored."""
    for name in tree.unlabeled_names:
        # A pixel's value says which label it has, so that the two can be compared at any time.
        ids = np.random.default_rng(len(name)).integers(0, 4, (16, 24)).astype(np.uint8)
        save(tree.root / f'pseudo/{name}.png', np.where(ids == 3, 255, ids).astype(np.uint8))
        save(tree.root / f'images/{name}.png', np.repeat(ids[..., None] * 60, 3, 2))
    return tree.root / 'pseudo'


@pytest.mark.parametrize(
    ('steps', 'valid'),
    [
        ([CROP, FLIP], 7 * 9),
        ([DOUBLE, CROP, dict(FLIP, direction=['horizontal', 'vertical'])], 7 * 9),
        # a pixel of the padding is image 180, label 255
        ([dict(type='Pad', size=(20, 40), pad_val=dict(img=180, seg=255))], 16 * 24),
        ([MARK, dict(type='Pad', size=(20, 40), pad_val=dict(img=180, seg=255))], 16 * 24),
    ],
)
@pytest.mark.usefixtures('labels')
def test_labels_move_with_the_image(tree, steps, valid):
    dataset = build(tree, loading(tree), *steps, PACK_LABELS)
    seen = set()
    for seed in range(12):
        image, sample = unlabeled(dataset, seed)
        pseudo = sample.pseudo_sem_seg.data
        assert pseudo.dtype == torch.int64 and sample.valid_mask.data.sum() == valid
        ids = (image[:1].long() + 30) // 60
        assert torch.equal(pseudo, torch.where(ids == 3, 255, ids))
        seen.add(image.numpy().tobytes())
    assert len(seen) > 1 or not (CROP in steps or FLIP in steps)


def test_labels_of_subfolders(tree, labels):
    load = LoadPseudoLabels(str(tree.root / 'images'), str(labels))
    path = load.path_of(str(tree.root / 'images/city/a.b.jpg'))
    assert path == str(labels / 'city/a.b.png')
    with pytest.raises(UserError, match='image_dir'):
        load.path_of(str(tree.root / 'elsewhere/a.jpg'))


@pytest.mark.parametrize(
    ('ids', 'options'),
    [
        (None, {}),
        (np.zeros((24, 16), np.uint8), {}),
        (np.full((16, 24), 256, np.uint16), {}),
        (np.full((16, 24), 3, np.uint8), dict(metainfo={})),  # it names no classes
    ],
)
def test_what_cannot_be_labels_stops_before_training(tree, labels, ids, options):
    (labels / 'u2.png').unlink()
    if ids is not None:
        cv2.imwrite(str(labels / 'u2.png'), ids)
    with pytest.raises(UserError) as caught:
        check_pairs(build(tree, loading(tree), PACK_LABELS, **options))
    assert str(caught.value).startswith(f'{labels}/u2.png: ')
