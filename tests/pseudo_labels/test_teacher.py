from types import SimpleNamespace

import tiny
import torch
from mmengine.structures import PixelData
from mmseg.registry import MODELS

from mmseg_cct.pseudo_labels.sureness import levels_of
from mmseg_cct.pseudo_labels.teacher import Teacher, _probabilities


def test_the_sigmoid_of_a_single_output_is_taken_once():
    """MMSeg's results hold the sigmoid of such an output, and logits of several."""
    head = dict(type='FCNHead', in_channels=8, channels=4, num_convs=1, num_classes=2)
    config = tiny.model_config(type='EncoderDecoder', decode_head=dict(head, out_channels=1))
    for name in ('data_preprocessor', 'neck', 'auxiliary_head'):
        config.pop(name)
    seg_logits = torch.tensor([[[[-3.0, -0.2], [0.2, 3.0]]]])
    (result,) = MODELS.build(config).postprocess_result(seg_logits)
    probabilities = _probabilities(result.seg_logits.data)
    torch.testing.assert_close(probabilities[1], seg_logits[0, 0].sigmoid())
    torch.testing.assert_close(probabilities.sum(0), torch.ones(2, 2))


def test_the_prediction_is_the_mean_over_the_views():
    torch.manual_seed(0)
    seg_logits = torch.randn(2, 3, 4, 5)  # of two views

    def test_step(batch):
        return [SimpleNamespace(seg_logits=PixelData(data=seg_logits[batch['inputs'][0]]))]

    teacher = Teacher.__new__(Teacher)
    teacher.pipeline = lambda info: dict(inputs=[0, 1], data_samples=[None, None])
    teacher._test_step = test_step
    labels, levels = teacher('a.png')
    confidence, expected = seg_logits.softmax(1).mean(0).max(0)
    assert (labels == expected.numpy()).all()
    assert (levels == levels_of(confidence.numpy())).all()
