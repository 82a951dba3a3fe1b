import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks import VoidAccuracyHook


def sample(label):
    return SegDataSample(gt_sem_seg=PixelData(data=torch.full((1, 4, 6), label)))


@pytest.mark.parametrize('branches', [True, False])
@pytest.mark.parametrize(('labels', 'is_void'), [((255, 255), True), ((255, 0), False)])
def test_only_a_batch_without_a_labelled_pixel_loses_its_accuracy(labels, is_void, branches):
    samples = [sample(label) for label in labels]
    if branches:  # the masks of other branches do not count
        samples = dict(labeled=samples, unlabeled=[sample(0), None])
    outputs = {'loss': 0.0, 'decode.acc_seg': 100.0, 'aux_0.acc_seg': 100.0}
    VoidAccuracyHook().after_train_iter(None, 0, dict(data_samples=samples), outputs)
    assert outputs.keys() == {'loss'} if is_void else len(outputs) == 3
