from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from plain import conv_chain

N, D, C, H, W = 2, 6, 3, 4, 5


def make_head(**kwargs):
    torch.manual_seed(0)
    cfg = dict(dict(type='PixelShuffleHead', in_channels=D, num_classes=C), **kwargs)
    return MODELS.build(cfg)


def samples(labels):
    return [
        SegDataSample(
            metainfo=dict(img_shape=label.shape, pad_shape=label.shape),
            gt_sem_seg=PixelData(data=label.unsqueeze(0)),
        )
        for label in labels
    ]


@pytest.mark.parametrize(
    ('stride', 'channels', 'final_activation'), [(1, None, False), (4, None, True), (4, 8, False)]
)
def test_is_the_chain_of_convolutions_relu_and_pixel_shuffle(final_activation, stride, channels):
    head = make_head(stride=stride, final_activation=final_activation, channels=channels)
    assert head.training  # and there is no dropout
    z = torch.randn(N, D, H, W)
    state, levels = head.state_dict(), range(len(head.upsample))
    x = F.conv2d(z, state['conv_seg.weight'])
    chain = [[state[f'upsample.{i}.0.{name}'] for i in levels] for name in ('weight', 'bias')]
    torch.testing.assert_close(head((z,)), conv_chain(x, *chain, final_activation))


@pytest.mark.parametrize(('channels', 'width'), [(None, C), (8, 8)])
def test_state_dict_keys(channels, width):
    # Golden: published checkpoints depend on them.
    state = make_head(stride=4, channels=channels).state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {
        'conv_seg.weight': (width, D, 1, 1),
        'upsample.0.0.weight': (4 * width, width, 1, 1),
        'upsample.0.0.bias': (4 * width,),
        'upsample.1.0.weight': (4 * C, width, 1, 1),
        'upsample.1.0.bias': (4 * C,),
    }


def test_its_sampler_weighs_pixels_and_its_ignored_label_leaves_them_out():
    head = make_head(ignore_index=2)
    logits, label = torch.randn(N, C, 8, 8), torch.randint(C, (N, 8, 8))
    weight = torch.rand(N, 8, 8)
    head.sampler = SimpleNamespace(sample=lambda *_: weight)
    losses = head.loss_by_feat(logits, samples(label))
    entropy = F.cross_entropy(logits, label, ignore_index=2, reduction='none')
    torch.testing.assert_close(losses['loss_ce'], (weight * entropy).mean())
    right = (logits.argmax(1) == label)[label != 2]
    torch.testing.assert_close(losses['acc_seg'], 100 * right.float().mean())


@pytest.mark.parametrize('align_corners', [False, True])
def test_a_prediction_is_resized_to_its_labels_and_losses_of_one_name_add_up(align_corners):
    losses = [dict(type='CrossEntropyLoss', loss_weight=weight) for weight in (1.0, 0.5)]
    head = make_head(align_corners=align_corners, loss_decode=losses)
    z, label = torch.randn(N, D, H, W), torch.randint(C, (N, 8 * H - 3, 8 * W - 1))
    size = label.shape[1:]
    resized = F.interpolate(head((z,)), size, mode='bilinear', align_corners=align_corners)
    loss = head.loss((z,), samples(label), None)['loss_ce']
    torch.testing.assert_close(loss, 1.5 * F.cross_entropy(resized, label))
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in head.parameters())
