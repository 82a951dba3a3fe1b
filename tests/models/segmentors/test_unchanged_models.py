import copy

import pytest
import tiny
import torch
from mmseg.registry import MODELS
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

N, C, SIZE = 2, 3, (64, 64)

ALL = dict(out_indices=(0, 1, 2, 3))
RESNET = dict(
    type='ResNetV1c', depth=50, stem_channels=4, base_channels=2, strides=(1, 2, 1, 1),
    dilations=(1, 1, 2, 4), contract_dilation=True, **ALL,
)  # fmt: skip
SWIN = dict(
    type='SwinTransformer', embed_dims=8, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2),
    window_size=2, drop_path_rate=0.3, **ALL,
)  # fmt: skip
MIT = dict(
    type='MixVisionTransformer', embed_dims=4, num_layers=(1, 1, 1, 1), num_heads=(1, 2, 4, 8),
    drop_path_rate=0.1, **ALL,
)  # fmt: skip


def head_on(in_channels, in_index=3, **settings):
    common = dict(channels=8, num_classes=C, norm_cfg=dict(type='BN'))
    return dict(common, in_channels=in_channels, in_index=in_index, **settings)


# by head: backbone, its settings, channels and stride of the last stage, and the stride of the
# features that it classifies
MODELS_OF_MMSEG = {
    'DepthwiseSeparableASPPHead': (
        *(RESNET, head_on(64, dilations=(1, 2), c1_in_channels=8, c1_channels=4)),
        *(64, 8, 4),
    ),
    'UPerHead': (SWIN, head_on((8, 16, 32, 64), (0, 1, 2, 3), pool_scales=(1, 2)), 64, 32, 4),
    'SegformerHead': (MIT, head_on((4, 8, 16, 32), (0, 1, 2, 3)), 32, 32, 4),
}
each_head = pytest.mark.parametrize('head', MODELS_OF_MMSEG)
each_z = pytest.mark.parametrize('fused', [False, True], ids=['stage', 'fused'])


def build(head, segmentor, **kwargs):
    backbone, settings, *_ = copy.deepcopy(MODELS_OF_MMSEG[head])
    main = dict(settings, type=head)
    whole = dict(mode='whole')
    return MODELS.build(
        dict(type=segmentor, backbone=backbone, decode_head=main, test_cfg=whole, **kwargs)
    )


def make_model(head, fused=False, beside=None):
    """The model of a head; `beside` goes before the bank in the list of auxiliary heads."""
    _, settings, channels, stride, fused_stride = MODELS_OF_MMSEG[head]
    bank = tiny.model_config()['auxiliary_head']
    if fused:
        channels, stride = settings['channels'], fused_stride
        bank['in_layer'] = 'conv_seg'
    bank.update(in_channels=channels, num_classes=C, stride=stride, channels=8, in_index=-1)
    torch.manual_seed(0)
    return build(head, 'CCTSegmentor', auxiliary_head=[*beside, bank] if beside else bank)


@each_z
@each_head
def test_a_step_trains_encoder_and_auxiliary_decoders(head, fused):
    model, batch = make_model(head, fused), tiny.pair_batch(N, SIZE)
    losses = model(**batch, mode='loss')
    # the head's running statistics are those of the labelled images
    norms = [m for m in model.decode_head.modules() if isinstance(m, _BatchNorm)]
    assert all(norm.num_batches_tracked == 1 for norm in norms)
    assert norms

    losses['aux.loss'].backward()
    for name, parameter in model.auxiliary_head.named_parameters():
        assert parameter.grad.abs().max() > 0, name
    reached = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert any(name.startswith('backbone.') for name in reached)
    in_head = {name for name in reached if name.startswith('decode_head.')}
    # the layers that fuse belong to the encoder where z is what they give; the classifier never
    assert bool(in_head) == fused
    assert not any(name.startswith('decode_head.conv_seg') for name in in_head)

    model.zero_grad()
    model.parse_losses(model(**batch, mode='loss'))[0].backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None]


@each_z
@each_head
def test_the_target_does_not_depend_on_chance_or_on_the_other_images(head, fused):
    model = make_model(head, fused).train()
    with torch.no_grad():
        features = [f.detach() for f in model.extract_feat(torch.randn(N, 3, *SIZE))]
        targets = []
        for inputs in (features, features, [f[[0, 0]] for f in features]):
            targets.append(model.predict_unlabeled(inputs))
    assert torch.equal(targets[0], targets[1])
    torch.testing.assert_close(targets[0][:1], targets[2][:1], rtol=1e-4, atol=1e-5)
    assert all(module.training for module in model.modules())


@each_head
def test_in_training_the_layers_that_fuse_normalise_by_the_batch_without_dropout(head):
    """As backbone and neck do, of which they are a part here."""
    model = make_model(head, fused=True).train()
    features = [f.detach() for f in model.extract_feat(torch.randn(N, 3, *SIZE))]
    (z,) = model.features_of_bank(features)
    assert torch.equal(z, model.features_of_bank(features)[0])
    twin = copy.deepcopy(model.decode_head).train()
    twin.dropout = nn.Identity()
    inputs = []
    twin.conv_seg.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    twin.forward(features)
    torch.testing.assert_close(z, inputs[0])
    (alone,) = model.features_of_bank([f[[0, 0]] for f in features])
    assert not torch.allclose(z[:1], alone[:1])
    assert all(module.training for module in model.modules())
