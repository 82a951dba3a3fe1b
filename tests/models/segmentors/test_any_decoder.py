import copy

import any_heads
import pytest
import tiny
import torch
from mmseg.registry import MODELS
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


@any_heads.each_head
@pytest.mark.parametrize('kind', ['FixMatchSegmentor', 'CCTStrongSegmentor', 'UniMatchSegmentor'])
def test_strong_views_train_it(name, kind):
    strong = dict(type='ConfidentCrossEntropy', threshold=0.0)
    if kind == 'CCTStrongSegmentor':
        model, term = make_model(name, kind)[0], 'aux.loss'
    else:
        model, term = any_heads.build(name, kind, loss_strong=strong), 'strong.loss'
    batch = make_batch()
    batch['inputs']['unlabeled_strong_0'] = batch['inputs']['unlabeled'] + 0.1
    losses = model.train()(**batch, mode='loss')
    losses[term].backward()
    assert next(model.backbone.parameters()).grad.abs().max() > 0


UPDATE = dict(
    type='KernelUpdateHead', num_classes=3, num_heads=2, feedforward_channels=8, in_channels=8,
    out_channels=8, conv_kernel_size=1,
    kernel_updator_cfg=dict(type='KernelUpdator', in_channels=8, feat_channels=8, out_channels=8),
)  # fmt: skip
GENERATE = dict(type='FCNHead', in_channels=6, channels=8, num_convs=1, num_classes=3)
KNET = dict(
    type='IterativeDecodeHead',
    num_stages=1,
    kernel_generate_head=GENERATE,
    kernel_update_head=[UPDATE],
)

STRONG = dict(type='ConfidentCrossEntropy', threshold=0.0, loss_weight=1.0)
UNLABELED_LOSSES = [
    ('FixMatchSegmentor', dict(loss_strong=STRONG), 'strong.loss'),
    ('UniMatchSegmentor', dict(loss_strong=STRONG), 'feature.loss'),
    ('InputVATSegmentor', dict(loss_consistency=dict(type='KLConsistency')), 'aux.loss'),
    ('MeanTeacherSegmentor', dict(loss_consistency=dict(type='MSEConsistency')), 'aux.loss'),
]


@pytest.mark.parametrize(('segmentor', 'options', 'term'), UNLABELED_LOSSES)
def test_heads_of_stages_learn_from_unlabelled_images_by_their_last(segmentor, options, term):
    torch.manual_seed(0)
    config = tiny.model_config(type=segmentor, auxiliary_head=None, **copy.deepcopy(options))
    config.decode_head = copy.deepcopy(KNET)
    model = MODELS.build(config).train()
    if segmentor == 'MeanTeacherSegmentor':
        tiny.with_teacher(model)
    batch = tiny.pair_batch(2)
    batch['inputs']['unlabeled_strong_0'] = batch['inputs']['unlabeled']
    model.loss(**batch)[term].backward()
    last = model.decode_head.kernel_update_head[-1]
    assert any(p.grad is not None and p.grad.any() for p in last.parameters())
