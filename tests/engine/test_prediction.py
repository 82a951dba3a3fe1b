import math

import pytest
import tiny
import torch
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.engine.prediction import fused_model, predict
from mmseg_cct.errors import UserError


@pytest.fixture(autouse=True)
def _no_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def batch(*sizes, original=None, **meta):
    def sample(size):
        return SegDataSample(metainfo=dict(ori_shape=original or size, img_shape=size, **meta))

    return dict(
        inputs=[torch.randint(256, (3, *size), dtype=torch.uint8) for size in sizes],
        data_samples=[sample(size) for size in sizes],
    )


def build(divisor=None, out_channels=3, **test_cfg):
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config.test_cfg = dict(mode='whole') | test_cfg
    config.data_preprocessor.test_cfg = dict(size_divisor=divisor) if divisor else None
    head = dict(type='FCNHead', channels=4, num_convs=1, out_channels=out_channels)
    config.decode_head.update(head, num_classes=max(out_channels, 2), threshold=0.3)
    model = MODELS.build(config).eval()
    logits = model._forward(torch.randn(2, 3, 40, 56))
    model.decode_head.conv_seg.bias -= logits.mean((0, 2, 3))  # else one class wins everywhere
    if out_channels == 1:
        model.decode_head.conv_seg.bias += math.log(0.3 / 0.7)  # the threshold's logit
    return model


SLIDE = dict(mode='slide', crop_size=(24, 32), stride=(16, 24))


@pytest.mark.parametrize(
    ('settings', 'data'),
    [
        ({}, {}),
        (dict(divisor=32), dict(original=(70, 90))),
        (dict(out_channels=1), dict(original=(70, 90))),
        (SLIDE, {}),
        (dict(SLIDE, out_channels=1), {}),  # each overlap counts: its sum would pass the threshold
        (SLIDE, dict(original=(70, 90))),
        (dict(SLIDE, divisor=8), dict(size=(41, 59))),
        (dict(SLIDE, crop_size=(64, 64)), {}),
        (SLIDE, dict(flip=True, flip_direction='horizontal')),
        ({}, dict(flip=True, flip_direction='vertical', original=(70, 90))),
    ],
)
def test_they_are_those_of_mmseg(settings, data):
    model, data = build(**settings), dict(data)
    given = batch(*[data.pop('size', (40, 56))] * 2, **data)
    predictions = predict(model, given), predict(model, given, with_confidence=True)
    for (found, none), (again, confidence), result in zip(
        *predictions, model.test_step(given), strict=True
    ):
        expected = result.pred_sem_seg.data[0]
        assert none is None and found.equal(again)
        probabilities = result.seg_logits.data  # logits, or the sigmoid of one channel
        if len(probabilities) > 1:
            probabilities = probabilities.softmax(0)
        else:
            probabilities = torch.cat([1 - probabilities, probabilities])
        same = found == expected
        wanted = probabilities.gather(0, expected.long()[None])[0]
        assert torch.allclose(confidence[same], wanted[same], atol=1e-4)
        assert found.dtype == torch.uint8 and found.shape == expected.shape
        assert (found == expected).float().mean() > 0.999  # a tie may fall either way
        assert len(expected.unique()) > 1


def test_a_confidence_is_not_made_up_for_a_model_that_predicts_in_its_own_way():
    model = build()
    model.__class__ = type('Other', (type(model),), dict(predict=lambda *_: None))
    with pytest.raises(UserError) as caught:
        predict(model, batch((40, 56)), with_confidence=True)
    assert caught.value.problems[0].key == '--confidence'


class Normed(torch.nn.Module):
    """A convolution and a BatchNorm that run as they are listed, or the other way round."""

    def __init__(self, reverse):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 3, 1), torch.nn.BatchNorm2d(3)
        self.reverse = reverse
        self.norm.running_mean.uniform_(1, 2)
        self.norm.running_var.uniform_(2, 3)
        self.eval()

    def test_step(self, data):
        x = torch.stack(data['inputs']) / 255
        steps = [self.norm, self.conv] if self.reverse else [self.conv, self.norm]
        logits = steps[1](steps[0](x))
        return [SegDataSample(seg_logits=PixelData(data=each)) for each in logits]


@pytest.mark.parametrize('reverse', [False, True])
def test_norms_are_merged_where_that_changes_nothing(reverse):
    model, data = Normed(reverse), batch((4, 4))
    fused = fused_model(model, data)
    assert (fused is model) == reverse
    expected, found = (each.test_step(data)[0].seg_logits.data for each in (model, fused))
    assert torch.allclose(expected, found, atol=1e-6)
    assert isinstance(fused.norm, torch.nn.Identity) != reverse
