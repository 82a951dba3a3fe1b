"""The map of an image's own pixels moves with it, and is all that filling changes."""

import numpy as np
import pytest
import torch
from folders import save

from mmseg_cct.datasets import MarkValidPixels, PairDraw, SemiSegDataset
from mmseg_cct.errors import UserError

DRAW = PairDraw(labeled=0, unlabeled=1, labeled_seed=3, unlabeled_seed=4)
PAD = dict(type='Pad', size=(30, 40), pad_val=dict(img=0, seg=255))
MARKED = [dict(type='LoadImageFromFile'), dict(type='MarkValidPixels')]


@pytest.fixture
def build(tree):
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
def test_filled_pixels_are_not_valid(build, steps):
    dataset = build(*MARKED, *steps, dict(type='PackUnlabeledInputs'))
    for seed in range(6):
        item = dataset[DRAW._replace(unlabeled_seed=seed)]
        image, sample = item['inputs']['unlabeled'], item['data_samples']['unlabeled']
        valid = sample.valid_mask.data
        assert valid.dtype == torch.bool and valid.shape == (1, *image.shape[-2:])
        assert torch.equal(valid, image.amin(0, keepdim=True) > 50)
        assert valid.all() == (not steps)
        assert 'gt_sem_seg' not in sample


def test_pseudo_labels_travel_beside_the_map(build, tree):
    for name in tree.unlabeled_names:
        labels = np.repeat(np.uint8([1, 255]), 8)[:, None].repeat(24, 1)
        save(tree.root / f'pseudo/{name}.png', labels)
    load = dict(type='LoadPseudoLabels', image_dir=f'{tree.root}/images')
    load['label_dir'] = f'{tree.root}/pseudo'
    for steps in ([load], [MARKED[1], load], [load, MARKED[1]]):
        item = build(MARKED[0], *steps, PAD, dict(type='PackPseudoLabels'))[DRAW]
        sample = item['data_samples']['unlabeled']
        image, valid = item['inputs']['unlabeled'], sample.valid_mask.data
        assert torch.equal(valid, image.amin(0, keepdim=True) > 50)
        # rows 0 to 7 of the image have labels
        expected = torch.full((1, *image.shape[-2:]), 255)
        expected[:, :8, :24] = 1
        assert torch.equal(sample.pseudo_sem_seg.data, expected)


def test_strong_views_share_the_map(build):
    pack, views = dict(type='PackUnlabeledInputs'), dict(type='StrongViews', jitter_prob=1.0, hue=0)
    item = build(*MARKED, PAD, pack, views)[DRAW]
    weak, strong = (item['data_samples'][f'unlabeled{end}'] for end in ('', '_strong_0'))
    assert torch.equal(strong.valid_mask.data, weak.valid_mask.data)
    filled = ~weak.valid_mask.data[0]
    assert (item['inputs']['unlabeled_strong_0'][:, filled] == 0).all()


def test_an_unmarked_pipeline_gives_no_map(build):
    samples = build(MARKED[0], dict(type='PackUnlabeledInputs'))[DRAW]['data_samples']
    assert 'valid_mask' not in samples['unlabeled']


def test_marking_without_an_image():
    with pytest.raises(UserError, match='MarkValidPixels without an image; expected it after'):
        MarkValidPixels()({})
