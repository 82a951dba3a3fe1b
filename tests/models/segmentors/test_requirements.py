import copy

import pytest
import tiny
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models import MeanTeacherSegmentor

IMAGES = torch.zeros(1, 3, 2, 2)


@pytest.mark.parametrize(
    ('kind', 'options'),
    [
        ('CCTSegmentor', {}),
        ('CCTPlusSegmentor', dict(loss_strong=dict(type='ConfidentCrossEntropy'))),
        ('MeanTeacherSegmentor', dict(loss_consistency=dict(type='MSEConsistency'))),
        ('SelfTrainingSegmentor', {}),
    ],
)
def test_a_batch_without_branches_is_an_error_that_names_the_model(kind, options):
    if kind != 'CCTSegmentor':
        options = dict(options, auxiliary_head=None)
    model = MODELS.build(tiny.model_config(type=kind, **options))
    with pytest.raises(UserError) as error:
        model.loss(torch.zeros(1, 3, 32, 32), [])
    assert str(error.value) == (
        f'train_dataloader.dataset: {kind} trains on pairs of a labelled and an unlabelled image; '
        'expected a SemiSegDataset with both'
    )


def test_checkpointed_activations_are_an_error_where_images_need_a_gradient():
    config = tiny.model_config(type='InputVATSegmentor', auxiliary_head=None)
    config.update(loss_consistency=dict(type='KLConsistency'))
    config.backbone.with_cp = True
    with pytest.raises(UserError, match=r'^model\.backbone\.with_cp=True: .* expected False'):
        MODELS.build(config)


KNET = dict(
    type='IterativeDecodeHead',
    num_stages=1,
    kernel_generate_head=dict(
        type='FCNHead', in_channels=6, channels=8, num_convs=1, num_classes=3
    ),
    kernel_update_head=[
        dict(
            type='KernelUpdateHead',
            num_classes=3,
            num_heads=2,
            feedforward_channels=8,
            in_channels=8,
            out_channels=8,
            conv_kernel_size=1,
            kernel_updator_cfg=dict(
                type='KernelUpdator', in_channels=8, feat_channels=8, out_channels=8
            ),
        )
    ],
)


def losses_of(model):
    if isinstance(model, MeanTeacherSegmentor):
        model.set_teacher(copy.deepcopy(model).eval())
    batch = tiny.pair_batch(2)
    batch['inputs']['unlabeled_strong_0'] = batch['inputs']['unlabeled']
    return model.loss(**batch)


STRONG = dict(type='ConfidentCrossEntropy', threshold=0.0, loss_weight=1.0)
JOINT = dict(joint_batch=True, feature_weight=0.5)
UNLABELED_LOSSES = [
    ('CCTPlusSegmentor', dict(loss_strong=STRONG), 'strong.loss'),
    ('CCTPlusSegmentor', dict(loss_strong=STRONG, **JOINT), 'strong.loss'),
    ('CCTPlusSegmentor', dict(loss_strong=STRONG, **JOINT), 'feature.loss'),
    ('InputVATSegmentor', dict(loss_consistency=dict(type='KLConsistency')), 'aux.loss'),
    ('MeanTeacherSegmentor', dict(loss_consistency=dict(type='MSEConsistency')), 'aux.loss'),
]


@pytest.mark.parametrize(('kind', 'options', 'term'), UNLABELED_LOSSES)
def test_a_head_of_several_stages_learns_from_unlabelled_images_by_its_last(kind, options, term):
    torch.manual_seed(0)
    config = tiny.model_config(type=kind, auxiliary_head=None, **copy.deepcopy(options))
    config.decode_head = copy.deepcopy(KNET)
    model = MODELS.build(config).train()
    losses_of(model)[term].backward()
    last = model.decode_head.kernel_update_head[-1]
    assert any(p.grad is not None and p.grad.any() for p in last.parameters())


@pytest.mark.parametrize(('kind', 'options', 'term'), UNLABELED_LOSSES)
def test_a_head_of_several_branches_is_an_error(kind, options, term):
    config = tiny.model_config(type=kind, auxiliary_head=None, **copy.deepcopy(options))
    head = dict(type='DAHead', in_channels=6, channels=4, pam_channels=2, num_classes=3)
    config.decode_head = dict(head, norm_cfg=dict(type='BN'))
    with pytest.raises(UserError, match=r'decode_head: returns a tuple of 3 predictions'):
        losses_of(MODELS.build(config).train())


@pytest.mark.parametrize('kind', ['CCTSegmentor', 'MeanTeacherSegmentor'])
def test_one_output_for_two_classes_is_an_error(kind):
    head = dict(type='FCNHead', in_channels=6, channels=4, num_classes=2, out_channels=1)
    config = tiny.model_config(type=kind)
    config['decode_head'] = dict(head, threshold=0.3, norm_cfg=dict(type='BN'))
    if kind == 'MeanTeacherSegmentor':
        config.update(auxiliary_head=None, loss_consistency=dict(type='MSEConsistency'))
    with pytest.raises(UserError, match=r'out_channels=1: expected one output for each class'):
        MODELS.build(config)
