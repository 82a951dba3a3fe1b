import copy

import any_heads
import pytest
import tiny
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from mmseg_cct.writer.base_config import Z, choose_z

# Channels and stride of the last stage of models whose heads have fused features.
LAST_STAGES = {
    'DepthwiseSeparableASPPHead': (32, 8), 'UPerHead': (64, 32), 'SegformerHead': (32, 32),
}  # fmt: skip
each_fusing_head = pytest.mark.parametrize('name', LAST_STAGES)
each_z = pytest.mark.parametrize('fused', [False, True], ids=['stage', 'fused'])


def make_model(name, kind='CCTSegmentor', fused=True, **options):
    """A model with auxiliary decoders on the features that `add_cct` chooses, or the last stage."""
    z, num_classes = choose_z(any_heads.settings(name))
    if not fused:
        z = Z(dict(in_index=-1), '', *LAST_STAGES[name])
    bank = dict(
        tiny.model_config()['auxiliary_head'],
        **z.selector,
        in_channels=z.channels,
        stride=z.stride,
        num_classes=num_classes,
    )
    return any_heads.build(name, kind, auxiliary_head=bank, **options), z


def make_batch():
    batch = tiny.pair_batch(2, any_heads.SIZE)
    any_heads.with_edges(batch['data_samples']['labeled'])
    return batch


@any_heads.each_head
def test_labelled_images_are_learned_as_mmseg_learns_them(name):
    (model, _), batch = make_model(name), make_batch()
    plain = any_heads.build(name).train()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k in plain.state_dict()})
    model.train()
    features = model.extract_feat(batch['inputs']['labeled'])
    torch.manual_seed(1)
    actual = model.supervised_loss(features, copy.deepcopy(batch['data_samples']['labeled']))
    torch.manual_seed(1)
    expected = plain._decode_head_forward_train(features, batch['data_samples']['labeled'])
    assert [value.item() for value in actual.values()] == [v.item() for v in expected.values()]
    own = dict(model.decode_head.named_buffers())
    for key, value in plain.decode_head.named_buffers():
        assert torch.equal(own[key], value), key


@any_heads.each_head
def test_a_step_trains_all_and_unlabelled_images_move_no_statistics_of_the_decoder(name):
    (model, z), batch = make_model(name), make_batch()
    assert z.stride in (4, 8)
    model.train()
    losses = model(**batch, mode='loss')
    norms = [m for m in model.decode_head.modules() if isinstance(m, _BatchNorm)]
    twin = copy.deepcopy(model)
    with torch.no_grad():
        features = twin.extract_feat(batch['inputs']['unlabeled'])
        twin.features_of_bank(features), twin.predict_unlabeled(features)
    for actual, expected in zip(twin.decode_head.buffers(), model.decode_head.buffers()):
        assert torch.equal(actual, expected)
    assert norms
    total, _ = model.parse_losses(losses)
    total.backward()
    assert total.isfinite()
    for key, parameter in model.auxiliary_head.named_parameters():
        assert parameter.grad.abs().max() > 0, key


STRONG = dict(loss_strong=dict(type='ConfidentCrossEntropy', threshold=0.0))
# by segmentor: its settings and what it learns from unlabelled images by
UNLABELED_LOSSES = {
    'CCTStrongSegmentor': ({}, 'aux.loss'),
    'FixMatchSegmentor': (STRONG, 'strong.loss'),
    'UniMatchSegmentor': (STRONG, 'feature.loss'),
    'InputVATSegmentor': (dict(loss_consistency=dict(type='KLConsistency')), 'aux.loss'),
    'MeanTeacherSegmentor': (dict(loss_consistency=dict(type='MSEConsistency')), 'aux.loss'),
}


@any_heads.each_head
@pytest.mark.parametrize('kind', UNLABELED_LOSSES)
def test_every_loss_of_unlabelled_images_trains_it(name, kind):
    options, term = copy.deepcopy(UNLABELED_LOSSES[kind])
    if kind == 'CCTStrongSegmentor':
        model, _ = make_model(name, kind)
    else:
        model = any_heads.build(name, kind, **options)
    if kind == 'MeanTeacherSegmentor':
        tiny.with_teacher(model)
    batch = make_batch()
    batch['inputs']['unlabeled_strong_0'] = batch['inputs']['unlabeled'] + 0.1
    model.train()(**batch, mode='loss')[term].backward()
    assert next(model.backbone.parameters()).grad.abs().max() > 0


@each_z
@each_fusing_head
def test_layers_that_fuse_belong_to_the_encoder_and_the_classifier_never_does(name, fused):
    model, _ = make_model(name, fused=fused)
    model.train()(**make_batch(), mode='loss')['aux.loss'].backward()
    reached = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert any(name.startswith('backbone.') for name in reached)
    assert any(name.startswith('decode_head.') for name in reached) == fused
    assert not any(name.startswith('decode_head.conv_seg') for name in reached)


@each_z
@each_fusing_head
def test_the_target_does_not_depend_on_chance_or_on_the_other_images(name, fused):
    model = make_model(name, fused=fused)[0].train()
    with torch.no_grad():
        features = model.extract_feat(torch.randn(2, 3, *any_heads.SIZE))
        target, again, twice = (
            model.predict_unlabeled(maps)
            for maps in (features, features, [f[[0, 0]] for f in features])
        )
    assert torch.equal(target, again)
    torch.testing.assert_close(target[:1], twice[:1], rtol=1e-4, atol=1e-5)
    assert all(module.training for module in model.modules())


@each_fusing_head
def test_in_training_the_layers_that_fuse_normalise_by_the_batch_without_dropout(name):
    """As backbone and neck do, of which they are a part here."""
    model = make_model(name)[0].train()
    features = [f.detach() for f in model.extract_feat(torch.randn(2, 3, *any_heads.SIZE))]
    (z,) = model.features_of_bank(features)
    assert torch.equal(z, model.features_of_bank(features)[0])
    twin = copy.deepcopy(model.decode_head).train()
    twin.dropout = torch.nn.Identity()
    inputs = []
    twin.conv_seg.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    twin.forward(features)
    torch.testing.assert_close(z, inputs[0])
    (alone,) = model.features_of_bank([f[[0, 0]] for f in features])
    assert not torch.allclose(z[:1], alone[:1])
    assert all(module.training for module in model.modules())
