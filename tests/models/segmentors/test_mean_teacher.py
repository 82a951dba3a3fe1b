import copy

import pytest
import tiny
import torch

from mmseg_cct.errors import UserError

N, SIZE = 2, (32, 32)


def test_the_student_learns_and_the_teacher_does_not():
    model, teacher = tiny.taught()
    state = copy.deepcopy(teacher.state_dict())
    model(**tiny.pair_batch(N), mode='loss')['aux.loss'].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
    assert model.decode_head.conv_seg.weight.grad.abs().max() > 0
    assert all(parameter.grad is None for parameter in teacher.parameters())
    for name, value in teacher.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_the_target_is_a_constant_even_of_a_teacher_that_could_learn():
    model, teacher = tiny.taught()
    teacher.requires_grad_()
    _, probabilities = model.predict_pair(torch.randn(N, 3, *SIZE))
    assert not probabilities.requires_grad


def test_noise_differs_between_student_and_teacher():
    model, teacher = tiny.taught(noise_std=0.5)
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
        tiny.mean_teacher()(**tiny.pair_batch(N), mode='loss')
