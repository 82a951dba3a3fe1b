import copy

import pytest
import tiny
import torch
from mmseg.registry import MODELS

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
