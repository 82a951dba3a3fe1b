import copy

import any_heads
import pytest
import tiny
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from mmseg_cct.writer.base_config import choose_z


def make_model(name, kind='CCTSegmentor', **options):
    """A model with auxiliary decoders on the features that `add_cct` would choose."""
    z, num_classes = choose_z(any_heads.settings(name))
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
