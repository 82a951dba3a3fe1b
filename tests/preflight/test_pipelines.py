import pytest

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs

PAD = dict(type='Pad', size=(30, 40), pad_val=dict(img=0, seg=255))
MARKED = [dict(type='LoadImageFromFile'), dict(type='MarkValidPixels')]


def _check(labeled, unlabeled=None):
    check_pairs(SemiSegDataset(labeled, unlabeled))


@pytest.fixture
def check(tree):
    """Checks a set whose unlabelled images have this pipeline."""
    return lambda *pipeline: _check(
        tree.config('labeled'), tree.config('unlabeled', pipeline=list(pipeline))
    )


@pytest.mark.parametrize(
    ('step', 'expected'),
    [
        (dict(type='LoadAnnotations'), r'unlabeled\.pipeline: LoadAnnotations reads masks'),
        (
            dict(type='RandomCrop', crop_size=(12, 12), cat_max_ratio=0.75),
            r'RandomCrop\(cat_max_ratio=0.75\) looks at the mask',
        ),
    ],
)
def test_unlabelled_masks_stay_shut(check, step, expected):
    with pytest.raises(UserError, match=expected):
        check(MARKED[0], step, dict(type='PackSegInputs'))


def test_a_rotation_that_mixes_ids_is_refused(tree):
    load, annotate, *rest = tree.config('labeled')['pipeline']
    pipeline = [load, annotate, dict(type='RandomRotFlip'), *rest]
    with pytest.raises(UserError, match=r'RandomRotFlip mixes the ids .*; expected RandomRotate'):
        _check(tree.config('labeled', pipeline=pipeline))


def test_what_is_marked_or_loaded_is_packed(tree, check):
    load = dict(type='LoadPseudoLabels', image_dir=str(tree.root / 'images'), label_dir='x')
    with pytest.raises(UserError, match='LoadPseudoLabels with PackUnlabeledInputs; expected Pack'):
        check(MARKED[0], load, PAD, dict(type='PackUnlabeledInputs'))
    with pytest.raises(UserError, match='MarkValidPixels with PackSegInputs; expected PackUnl'):
        check(*MARKED, PAD, dict(type='PackSegInputs'))


def test_filling_without_marking_is_told(check, messages):
    check(MARKED[0], PAD, dict(type='PackSegInputs'))
    assert len(messages) == 1
    assert 'Pad fills pixels' in messages[0] and 'MarkValidPixels' in messages[0]
    check(*MARKED, PAD, dict(type='PackUnlabeledInputs'))
    check(MARKED[0], dict(type='RandomCrop', crop_size=(9, 9)), dict(type='PackSegInputs'))
    assert len(messages) == 1


FILLS = (
    (dict(type='RandomRotate', prob=1.0, degree=9), 'seg_pad_val'),
    (dict(type='RandomCutOut', prob=1.0, n_holes=1, cutout_shape=(4, 4)), 'seg_fill_in'),
    (dict(type='Pad', size=(30, 40)), 'pad_val'),
)


@pytest.mark.parametrize(('step', 'key'), FILLS)
def test_a_transform_that_fills_masks_with_a_class_is_told(tree, messages, step, key):
    load, annotate, *_, pack = tree.config('labeled')['pipeline']
    for value in (255, 1):
        filled = dict(step, **{key: dict(img=0, seg=value) if key == 'pad_val' else value})
        _check(tree.config('labeled', pipeline=[load, annotate, filled, pack]))
        assert len(messages) == (value == 1)
    assert messages[0].startswith(f'labeled.pipeline: {step["type"]} fills masks with class ')
