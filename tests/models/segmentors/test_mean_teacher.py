import copy

import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.teacher import use_batch_statistics

N, SIZE = 2, (32, 32)


def make_model(seed=0, weight=30.0, **kwargs):
    torch.manual_seed(seed)
    config = tiny.model_config(
        type='MeanTeacherSegmentor',
        auxiliary_head=None,
        loss_consistency=dict(type='MSEConsistency', loss_weight=weight),
        **kwargs,
    )
    return MODELS.build(config)


def with_teacher(batch_statistics=True, **kwargs):
    model, teacher = make_model(**kwargs), make_model(seed=9).requires_grad_(False).eval()
    if batch_statistics:  # as `TeacherHook` does
        use_batch_statistics(teacher)
    model.set_teacher(teacher)
    return model, teacher


def test_consistency_is_the_squared_distance_of_the_two_softmaxes():
    model, teacher = with_teacher()
    batch = tiny.pair_batch(N)
    student = copy.deepcopy(model)
    losses = model(**batch, mode='loss')
    p = teacher(batch['inputs']['unlabeled']).softmax(1)
    q = student(batch['inputs']['unlabeled']).softmax(1)
    expected = F.mse_loss(q, p)
    torch.testing.assert_close(losses['aux.consistency'], expected.detach())
    torch.testing.assert_close(losses['aux.loss'], 30 * expected)


def test_padding_does_not_count():
    model, teacher = with_teacher()
    batch = tiny.pair_batch(N)
    valid = torch.zeros(N, *SIZE, dtype=torch.bool)
    valid[0, :20, :7] = valid[1, :, :16] = True
    for sample, mask in zip(batch['data_samples']['unlabeled'], valid):
        sample.valid_mask = PixelData(data=mask[None])
    student = copy.deepcopy(model)
    losses = model(**batch, mode='loss')
    p = teacher(batch['inputs']['unlabeled']).softmax(1)
    q = student(batch['inputs']['unlabeled']).softmax(1)
    expected = (p - q).square().mean(1)[valid].mean()
    torch.testing.assert_close(losses['aux.consistency'], expected.detach())


def test_the_student_learns_and_the_teacher_does_not():
    model, teacher = with_teacher()
    state = copy.deepcopy(teacher.state_dict())
    model(**tiny.pair_batch(N), mode='loss')['aux.loss'].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
    assert model.decode_head.conv_seg.weight.grad.abs().max() > 0
    assert all(parameter.grad is None for parameter in teacher.parameters())
    for name, value in teacher.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_the_target_is_a_constant_even_of_a_teacher_that_could_learn():
    model, teacher = with_teacher()
    teacher.requires_grad_()
    _, probabilities = model.predict_pair(torch.randn(N, 3, *SIZE))
    assert not probabilities.requires_grad


def test_the_teacher_is_no_part_of_the_model():
    model, teacher = with_teacher()
    alone = make_model()
    assert list(model.state_dict()) == list(alone.state_dict())
    assert len(list(model.parameters())) == len(list(alone.parameters()))
    model.train()
    assert model.backbone.training
    assert not teacher.training


def batch_norms(model):
    return [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]


def test_the_teachers_batch_norm_takes_the_statistics_of_the_batch():
    (model, teacher), images = with_teacher(), torch.randn(N, 3, *SIZE)
    _, probabilities = model.predict_pair(images)
    with torch.no_grad():
        expected = make_model(seed=9).train()(images).softmax(1)
        running = make_model(seed=9).eval()(images).softmax(1)
    torch.testing.assert_close(probabilities, expected)
    assert not torch.allclose(probabilities, running, atol=1e-3)
    assert batch_norms(teacher) and not teacher.training


def test_or_its_running_statistics():
    (model, teacher), images = with_teacher(batch_statistics=False), torch.randn(N, 3, *SIZE)
    _, probabilities = model.predict_pair(images)
    with torch.no_grad():
        expected = make_model(seed=9).eval()(images).softmax(1)
    torch.testing.assert_close(probabilities, expected)
    assert not any(module.training for module in teacher.modules())


def test_noise_differs_between_student_and_teacher():
    model, teacher = with_teacher(noise_std=0.5)
    seen = []
    for each in (model, teacher):
        each.backbone.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    images = torch.randn(N, 3, 256, 256)
    model.predict_pair(images)
    noise = [image - images for image in seen]
    assert [n.std().item() for n in noise] == pytest.approx([0.5, 0.5], rel=0.01)
    correlation = torch.corrcoef(torch.stack(noise).flatten(1))[0, 1]
    assert correlation.abs() < 0.01


def test_without_a_hook_is_an_error():
    with pytest.raises(UserError, match=r'custom_hooks: .* expected a TeacherHook'):
        make_model()(**tiny.pair_batch(N), mode='loss')


def test_a_plain_batch_is_an_error():
    model, _ = with_teacher()
    batch = {key: value['labeled'] for key, value in tiny.pair_batch(N).items()}
    with pytest.raises(UserError, match='MeanTeacherSegmentor trains on pairs'):
        model(**batch, mode='loss')


def test_negative_noise_is_an_error():
    with pytest.raises(UserError, match=r'noise_std=-0.1: expected a finite number from 0'):
        make_model(noise_std=-0.1)


def test_unlabelled_images_stay_out_of_the_heads_statistics():
    head = dict(
        type='FCNHead', in_channels=6, channels=4, num_classes=3, num_convs=1,
        norm_cfg=dict(type='BN'), in_index=-1,
    )  # fmt: skip
    model = make_model(decode_head=head)
    model.set_teacher(make_model(seed=9, decode_head=head).requires_grad_(False).eval())
    model(**tiny.pair_batch(N), mode='loss')
    assert model.decode_head.convs[0].bn.num_batches_tracked == 1
