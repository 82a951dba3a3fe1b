import copy

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.models import SegDataPreProcessor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.models.data_preprocessors import branch_preprocessor

SETTINGS = dict(
    mean=[100.0, 110.0, 120.0],
    std=[50.0, 60.0, 70.0],
    bgr_to_rgb=True,
    size=(10, 12),
    pad_val=0,
    seg_pad_val=255,
    test_cfg=dict(size_divisor=8),
)


def branch(sizes, labelled, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs, data_samples = [], []
    for size in sizes:
        inputs.append(torch.randint(0, 256, (3, *size), generator=generator, dtype=torch.uint8))
        data_samples.append(SegDataSample(metainfo=dict(img_shape=size)))
        if labelled:
            label = torch.randint(0, 5, (1, *size), generator=generator)
            data_samples[-1].gt_sem_seg = PixelData(data=label)
    return inputs, data_samples


LABELED = branch([(10, 12), (8, 9)], True, 0)
UNLABELED = branch([(7, 12), (10, 5), (10, 12)], False, 1)


def build():
    return MODELS.build(dict(type='BranchPreprocessor', **SETTINGS))


def run(preprocessor, inputs, data_samples, training=True):
    return preprocessor(
        copy.deepcopy(dict(inputs=inputs, data_samples=data_samples)), training=training
    )


def run_branches(**branches):
    """Inputs and samples of each branch, prepared."""
    inputs, samples = ({name: b[i] for name, b in branches.items()} for i in range(2))
    return run(build(), inputs, samples)


def assert_same(actual, expected):
    assert torch.equal(actual['inputs'], expected['inputs'])
    assert len(actual['data_samples']) == len(expected['data_samples'])
    for a, b in zip(actual['data_samples'], expected['data_samples']):
        assert a.metainfo == b.metainfo
        assert a.keys() == b.keys()
        for name, value in a.items():
            assert torch.equal(value.data, b.get(name).data)


def test_each_branch_is_prepared_as_it_would_be_alone():
    both = run_branches(labeled=LABELED, unlabeled=UNLABELED)
    assert both.keys() == {'inputs', 'data_samples'}
    assert both['inputs'].keys() == both['data_samples'].keys() == {'labeled', 'unlabeled'}
    for name, alone in (('labeled', LABELED), ('unlabeled', UNLABELED)):
        expected = run(SegDataPreProcessor(**SETTINGS), *alone)
        assert expected['inputs'].shape[-2:] == (10, 12)
        for sample in both['data_samples'][name] if name == 'unlabeled' else ():
            del sample.valid_mask  # which MMSeg does not know
        assert_same({key: both[key][name] for key in both}, expected)


def test_a_branch_may_have_fewer_images():
    one = [part[:1] for part in UNLABELED]
    expected = run_branches(labeled=LABELED, unlabeled=one)
    actual = run_branches(labeled=LABELED, unlabeled=[[*part, None] for part in one])
    for name in ('labeled', 'unlabeled'):
        assert_same(*({key: b[key][name] for key in b} for b in (actual, expected)))


def test_a_plain_batch_is_prepared_as_by_mmseg():
    one_size = branch([(7, 9), (7, 9)], True, 2)
    for training, batch in ((True, LABELED), (True, one_size), (False, one_size)):
        assert_same(
            run(build(), *batch, training=training),
            run(SegDataPreProcessor(**SETTINGS), *batch, training=training),
        )


@pytest.mark.parametrize('sizes', [[(7, 9)] * 3, [(7, 9), (10, 3), (8, 8)]])
@pytest.mark.parametrize('padded_by', [dict(size=(10, 12)), dict(size=None, size_divisor=8)])
def test_a_batch_is_prepared_as_a_whole_as_image_by_image(padded_by, sizes, monkeypatch):
    inputs, samples = branch(sizes, True, 3)
    pseudo = [SegDataSample(metainfo=s.metainfo, pseudo_sem_seg=s.gt_sem_seg) for s in samples]
    data = [dict(labeled=inputs, unlabeled=inputs), dict(labeled=samples, unlabeled=pseudo)]
    preprocessor = MODELS.build(dict(type='BranchPreprocessor', **{**SETTINGS, **padded_by}))
    whole = run(preprocessor, *data)
    monkeypatch.setattr(branch_preprocessor, '_parts', lambda data: None)
    expected = run(preprocessor, *data)
    for name in ('labeled', 'unlabeled'):
        assert_same(*({key: b[key][name] for key in b} for b in (whole, expected)))


def test_pseudo_labels_are_padded_as_masks_are():
    inputs, samples = branch([(7, 12), (10, 5)], True, 3)
    pseudo = [SegDataSample(metainfo=s.metainfo, pseudo_sem_seg=s.gt_sem_seg) for s in samples]
    out = run_branches(labeled=(inputs, samples), unlabeled=(inputs, pseudo))['data_samples']
    for mask, labels in zip(out['labeled'], out['unlabeled']):
        assert torch.equal(labels.pseudo_sem_seg.data, mask.gt_sem_seg.data)
        assert labels.pseudo_sem_seg.shape == (10, 12)
        assert 'gt_sem_seg' not in labels


def test_unlabelled_samples_carry_a_mask_of_the_images_own_pixels():
    views = dict(labeled=LABELED, unlabeled=UNLABELED, unlabeled_strong_0=UNLABELED)
    out = run_branches(**views)['data_samples']
    assert not any('valid_mask' in sample for sample in out['labeled'])
    for name in ('unlabeled', 'unlabeled_strong_0'):
        for sample, (height, width) in zip(out[name], [(7, 12), (10, 5), (10, 12)]):
            valid = sample.valid_mask.data
            assert valid.shape == (1, 10, 12) and valid.dtype == torch.bool
            assert valid[:, :height, :width].all() and valid.sum() == height * width


def test_a_mask_of_the_pipeline_is_extended():
    inputs, samples = branch([(7, 12)], False, 4)
    marked = torch.rand(1, 7, 12) > 0.5
    samples[0].valid_mask = PixelData(data=marked)
    out = run_branches(unlabeled=(inputs, samples))
    valid = out['data_samples']['unlabeled'][0].valid_mask.data
    assert torch.equal(valid[:, :7], marked) and not valid[:, 7:].any()
