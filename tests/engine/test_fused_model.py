"""Models whose norms are merged into their convolutions."""

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.engine.fused_model import fused_model


class Normed(torch.nn.Module):
    """A convolution and a BatchNorm that run as they are listed, or the other way round."""

    def __init__(self, reverse):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 3, 1), torch.nn.BatchNorm2d(3)
        self.reverse = reverse
        with torch.no_grad():
            self.norm.running_mean.uniform_(1, 2)
            self.norm.running_var.uniform_(2, 3)
        self.eval()

    def test_step(self, data):
        x = torch.stack(data['inputs'])
        steps = [self.norm, self.conv] if self.reverse else [self.conv, self.norm]
        logits = steps[1](steps[0](x))
        return [SegDataSample(seg_logits=PixelData(data=each)) for each in logits]


def one_image(side=4):
    sample = SegDataSample(metainfo=dict(ori_shape=(side, side), img_shape=(side, side)))
    return dict(inputs=[torch.rand(3, side, side)], data_samples=[sample])


@pytest.mark.parametrize('reverse', [False, True])
def test_norms_are_merged_where_that_changes_nothing(reverse):
    model, data = Normed(reverse), one_image()
    with torch.no_grad():
        fused = fused_model(model, data)
        assert (fused is model) == reverse
        expected, found = (each.test_step(data)[0].seg_logits.data for each in (model, fused))
    assert torch.allclose(expected, found, atol=1e-6)
    assert isinstance(fused.norm, torch.nn.Identity) != reverse


def test_a_model_that_cannot_be_copied_stays_as_it_is():
    model, data = Normed(False), one_image()
    model.lock = (each for each in ())  # a generator
    assert fused_model(model, data) is model


class Listener:
    """As `NonFiniteLossHook`, which knows the runner and its data loaders."""

    runner = (each for each in ())  # cannot be copied

    def __init__(self):
        self.runner = Listener.runner

    def listen(self, *_):
        pass


@torch.no_grad()
def test_what_belongs_to_a_training_does_not_hinder_and_is_not_copied():
    model = Normed(False)
    model.register_forward_hook(Listener().listen)
    model._teacher = (Listener.runner,)
    fused = fused_model(model, one_image())
    assert fused is not model and not fused._forward_hooks and fused._teacher == ()
    assert model._forward_hooks and model._teacher


@torch.no_grad()
def test_a_large_image_is_compared_on_a_piece(monkeypatch):
    sizes, step = [], Normed.test_step

    def watched(self, data):
        sizes.extend(tuple(image.shape) for image in data['inputs'])
        return step(self, data)

    monkeypatch.setattr(Normed, 'test_step', watched)
    fused_model(Normed(False), one_image(700))
    assert sizes == [(3, 512, 512)] * 2
