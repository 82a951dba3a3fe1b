"""The marks of an image's own pixels, and pseudo labels: both move with it like a mask."""

import cv2
import numpy as np
import pytest
import torch
from folders import save

from mmseg_cct.datasets import LoadPseudoLabels, MarkValidPixels, PairDraw, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs

DRAW = PairDraw(labeled=0, unlabeled=1, labeled_seed=3, unlabeled_seed=4)
PAD = dict(type='Pad', size=(30, 40), pad_val=dict(img=0, seg=255))
MARKED = [dict(type='LoadImageFromFile'), dict(type='MarkValidPixels')]


@pytest.fixture
def build_bright(tree):
    """A set of bright unlabelled images: what is black has been filled."""
    for name in tree.unlabeled_names:
        image = np.random.default_rng(len(name)).integers(100, 256, (16, 24, 3), np.uint8)
        save(tree.root / f'images/{name}.png', image)

    def dataset(*pipeline):
        config = tree.config('unlabeled', img_suffix='.png', pipeline=list(pipeline))
        return SemiSegDataset(tree.config('labeled'), config)

    return dataset


@pytest.mark.parametrize(
    'steps',
    [
        [],
        [PAD],
        [dict(PAD, pad_val=dict(img=0, seg=0))],
        [PAD, dict(type='RandomFlip', prob=0.5)],
        [dict(type='RandomCrop', crop_size=(9, 9)), PAD],
        [PAD, dict(type='RandomCrop', crop_size=(25, 25)), dict(type='RandomFlip', prob=0.5)],
        [PAD, dict(type='Resize', scale=(80, 60), interpolation='nearest')],
        [dict(type='Resize', scale=(48, 20)), dict(type='Pad', size=(20, 60))],
        [dict(type='RandomRotate', prob=1.0, degree=(90, 90))],
    ],
)
def test_filled_pixels_are_not_valid(build_bright, steps):
    dataset = build_bright(*MARKED, *steps, dict(type='PackUnlabeledInputs'))
    for seed in range(6):
        item = dataset[DRAW._replace(unlabeled_seed=seed)]
        image, sample = item['inputs']['unlabeled'], item['data_samples']['unlabeled']
        valid = sample.valid_mask.data
        assert valid.dtype == torch.bool and valid.shape == (1, *image.shape[-2:])
        assert torch.equal(valid, image.amin(0, keepdim=True) > 50)
        assert valid.all() == (not steps)
        assert 'gt_sem_seg' not in sample


def test_pseudo_labels_travel_beside_the_map(build_bright, tree):
    for name in tree.unlabeled_names:
        labels = np.repeat(np.uint8([1, 255]), 8)[:, None].repeat(24, 1)
        save(tree.root / f'pseudo/{name}.png', labels)
    load = dict(type='LoadPseudoLabels', image_dir=f'{tree.root}/images')
    load['label_dir'] = f'{tree.root}/pseudo'
    for steps in ([load], [MARKED[1], load], [load, MARKED[1]]):
        item = build_bright(MARKED[0], *steps, PAD, dict(type='PackPseudoLabels'))[DRAW]
        sample = item['data_samples']['unlabeled']
        image, valid = item['inputs']['unlabeled'], sample.valid_mask.data
        assert torch.equal(valid, image.amin(0, keepdim=True) > 50)
        # rows 0 to 7 of the image have labels
        expected = torch.full((1, *image.shape[-2:]), 255)
        expected[:, :8, :24] = 1
        assert torch.equal(sample.pseudo_sem_seg.data, expected)


def test_strong_views_share_the_map(build_bright):
    pack, views = dict(type='PackUnlabeledInputs'), dict(type='StrongViews', jitter_prob=1.0, hue=0)
    item = build_bright(*MARKED, PAD, pack, views)[DRAW]
    weak, strong = (item['data_samples'][f'unlabeled{end}'] for end in ('', '_strong_0'))
    assert torch.equal(strong.valid_mask.data, weak.valid_mask.data)
    filled = ~weak.valid_mask.data[0]
    assert (item['inputs']['unlabeled_strong_0'][:, filled] == 0).all()


def test_an_unmarked_pipeline_gives_no_map(build_bright):
    samples = build_bright(MARKED[0], dict(type='PackUnlabeledInputs'))[DRAW]['data_samples']
    assert 'valid_mask' not in samples['unlabeled']


def test_marking_without_an_image():
    with pytest.raises(UserError, match='MarkValidPixels without an image; expected it after'):
        MarkValidPixels()({})


@pytest.fixture
def labels(tree):
    """Pseudo labels of the unlabelled images: their blue channel in three classes, some ignored."""
    for name in tree.unlabeled_names:
        # A pixel's value says which label it has, so that the two can be compared at any time.
        ids = np.random.default_rng(len(name)).integers(0, 4, (16, 24)).astype(np.uint8)
        save(tree.root / f'pseudo/{name}.png', np.where(ids == 3, 255, ids).astype(np.uint8))
        save(tree.root / f'images/{name}.png', np.repeat(ids[..., None] * 60, 3, 2))
    return tree.root / 'pseudo'


def pipeline(tree, labels, *steps, load=None):
    load = load or dict(
        type='LoadPseudoLabels', image_dir=str(tree.root / 'images'), label_dir=str(labels)
    )
    return [dict(type='LoadImageFromFile'), load, *steps, dict(type='PackPseudoLabels')]


def build(tree, labels, *steps, **kwargs):
    steps = pipeline(tree, labels, *steps, **kwargs)
    config = tree.config('unlabeled', img_suffix='.png', pipeline=steps)
    return SemiSegDataset(tree.config('labeled'), config)


def image_and_labels(dataset, seed):
    item = dataset[DRAW._replace(unlabeled_seed=seed)]
    sample = item['data_samples']['unlabeled']
    assert 'gt_sem_seg' not in sample
    return item['inputs']['unlabeled'], sample.pseudo_sem_seg.data


RESIZE = dict(type='Resize', scale=(72, 48), interpolation='nearest')
FLIP = dict(type='RandomFlip', prob=0.5, direction=['horizontal', 'vertical'])


@pytest.mark.parametrize(
    'steps',
    [
        [],
        [dict(type='RandomFlip', prob=0.5)],
        [dict(type='RandomFlip', prob=1.0, direction='vertical')],
        [dict(type='RandomCrop', crop_size=(7, 9))],
        [dict(type='Resize', scale=(48, 32), interpolation='nearest')],
        [dict(type='RandomCrop', crop_size=(7, 9)), dict(type='RandomFlip', prob=0.5)],
        [RESIZE, dict(type='RandomCrop', crop_size=(30, 30)), FLIP],
        # a pixel of the padding is image 180, label 255
        [dict(type='Pad', size=(20, 40), pad_val=dict(img=180, seg=255))],
    ],
)
def test_labels_move_with_the_image(tree, labels, steps):
    dataset = build(tree, labels, *steps)
    seen = set()
    for seed in range(12):
        image, pseudo = image_and_labels(dataset, seed)
        assert pseudo.dtype == torch.int64
        ids = (image[:1].long() + 30) // 60
        assert torch.equal(pseudo, torch.where(ids == 3, 255, ids))
        seen.add(image.numpy().tobytes())
    assert len(seen) > 1 or not any('Random' in str(s) and '0.5' in str(s) for s in steps)


def test_resize_takes_the_nearest_label(tree, labels):
    dataset = build(tree, labels, dict(type='Resize', scale=(37, 29)))
    _, pseudo = image_and_labels(dataset, 0)
    original = cv2.imread(str(labels / 'u1.png'), cv2.IMREAD_UNCHANGED)
    expected = cv2.resize(original, (37, 29), interpolation=cv2.INTER_NEAREST)
    assert np.array_equal(pseudo[0].numpy(), expected)


def test_labels_of_subfolders(tree, labels):
    load = LoadPseudoLabels(str(tree.root / 'images'), str(labels))
    path = load.path_of(str(tree.root / 'images/city/a.b.jpg'))
    assert path == str(labels / 'city/a.b.png')
    with pytest.raises(UserError, match=r'image_dir: .*images does not hold .*elsewhere/a\.jpg'):
        load.path_of(str(tree.root / 'elsewhere/a.jpg'))


class TestErrors:
    @pytest.mark.parametrize(
        ('ids', 'message'),
        [
            (None, 'no such file; expected the pseudo'),
            (np.zeros((24, 16), np.uint8), '16×24 pixels; expected 24×16, the size of'),
            (np.zeros((16, 24), np.uint16), 'label ids of type .*; expected bytes'),
        ],
    )
    def test_what_cannot_be_labels_stops_before_training(self, tree, labels, ids, message):
        (labels / 'u2.png').unlink()
        if ids is not None:
            cv2.imwrite(str(labels / 'u2.png'), ids)
        with pytest.raises(UserError, match=rf'pseudo/u2\.png: {message}'):
            check_pairs(build(tree, labels))

    @pytest.mark.parametrize('own', [{}, {'metainfo': {}}])  # their set may name no classes
    def test_an_unknown_id(self, tree, labels, own):
        cv2.imwrite(str(labels / 'u2.png'), np.full((16, 24), 3, np.uint8))
        unlabeled = tree.config(
            'unlabeled', img_suffix='.png', pipeline=pipeline(tree, labels), **own
        )
        with pytest.raises(UserError, match=r'u2\.png: label id 3 outside .*expected 0 to 2, or'):
            check_pairs(SemiSegDataset(tree.config('labeled'), unlabeled))

    def test_packing_them_as_a_mask(self, tree, labels):
        steps = [*pipeline(tree, labels)[:-1], dict(type='PackSegInputs')]
        config = tree.config('unlabeled', img_suffix='.png', pipeline=steps)
        with pytest.raises(UserError, match=r'gives a ground truth; .* PackPseudoLabels after'):
            SemiSegDataset(tree.config('labeled'), config)[DRAW]

    def test_packing_without_loading(self, tree, labels):
        with pytest.raises(UserError, match=r'PackPseudoLabels without LoadPseudoLabels'):
            build(tree, labels, load=dict(type='RandomFlip', prob=0.0))[DRAW]
