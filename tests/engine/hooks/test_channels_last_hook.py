"""The memory format of the model that a run trains, and of its average."""

import copy
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.dist import all_reduce_params
from mmengine.model import MMDistributedDataParallel
from mmseg.registry import MODELS
from ranks import on_two_ranks, without_cuda
from teacher_training import train_wide as train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mmseg_cct.engine.hooks import ChannelsLastHook
from mmseg_cct.engine.hooks.resume_hook import _lay_out_as_the_weights


def network(groups):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(4, 4, 3, groups=groups), nn.Conv2d(4, 2, 3))


def is_channels_last(model):
    kernels = [weight for weight in model.parameters() if weight.dim() == 4]
    return all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


@pytest.mark.parametrize(
    'enabled, groups, converted',
    [(None, 4, True), (None, 1, False), (None, 2, False), (True, 1, True), (False, 4, False)],
)
def test_depthwise_convolutions_decide_unless_told(enabled, groups, converted):
    plain, model = network(groups), network(groups)
    ChannelsLastHook(enabled).before_train(SimpleNamespace(model=model))
    # a depthwise 3×3 weight, (4, 1, 3, 3), is of both formats: look at the dense one
    assert is_channels_last(model[1:]) == converted
    image = torch.rand(1, 4, 8, 8)
    torch.testing.assert_close(model(image), plain(image))
    assert model(image).is_contiguous(memory_format=torch.channels_last) or not converted


@without_cuda
@pytest.mark.parametrize('find_unused_parameters', [True, False])
def test_ddp_averages_the_gradients_in_the_new_layout(tmp_path, find_unused_parameters):
    def wrap(_, model):
        return MMDistributedDataParallel(model, find_unused_parameters=find_unused_parameters)

    def largest_errors(rank):
        model = network(1)
        runner = SimpleNamespace(model=wrap(None, model), cfg={}, wrap_model=wrap)
        ChannelsLastHook().before_train(runner)
        images = torch.rand(2, 4, 8, 8, generator=torch.Generator().manual_seed(rank))
        expected = torch.autograd.grad(model(images).square().sum(), list(model.parameters()))
        expected = [gradient.contiguous() for gradient in expected]
        all_reduce_params(expected, op='mean')
        DistributedDataParallel.forward(runner.model, images).square().sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        return [(g - e).abs().max() / e.abs().max() for g, e in zip(gradients, expected)]

    for errors in on_two_ranks(largest_errors, tmp_path):
        assert max(errors) < 1e-5


@pytest.fixture(scope='module')
def runs(slow, tmp_path_factory):
    """With and without the hook; the teacher is the student of the step before."""
    return [
        train(tmp_path_factory.mktemp('run'), dict(type='TeacherHook', decay=1e-6), hooks=hooks)
        for hooks in ([dict(type='ChannelsLastHook')], [])
    ]


def test_weights_of_student_and_teacher_are_in_the_layout(runs):
    (_, runner), (_, plain) = runs
    for model in (runner.model, *runner.model._teacher):
        weight = model.backbone.layer1[0].conv1.weight  # 3 x 3, several channels
        assert weight.is_contiguous(memory_format=torch.channels_last)
        assert not weight.is_contiguous()
    assert plain.model.backbone.layer1[0].conv1.weight.is_contiguous()


def test_the_start_is_the_same(runs):
    """No draw has reached the first loss of the labelled images; later, noise has another order."""
    here, there = (recorder.outputs[0]['decode.loss_ce'] for recorder, _ in runs)
    assert here == pytest.approx(there, rel=1e-5)


@pytest.mark.parametrize('with_hook', [True, False])
def test_the_teacher_follows_the_student(runs, with_hook):
    _, runner = runs[not with_hook]
    (teacher,) = runner.model._teacher
    averages = dict(teacher.named_parameters())
    for name, value in runner.model.named_parameters():
        torch.testing.assert_close(averages[name], value, msg=name)


def test_the_teacher_of_several_domains_is_in_the_layout_too():
    model = MODELS.build(tiny.multi_domain_config())
    teacher = copy.deepcopy(model)
    model.set_teacher(teacher)
    ChannelsLastHook(enabled=True).before_train(SimpleNamespace(model=model, cfg={}))
    assert is_channels_last(teacher)


@pytest.mark.parametrize('before', [torch.channels_last, torch.contiguous_format])
def test_moments_of_another_layout_follow_their_weights(before):
    """A fused step would take one weight's moments for another's, and say nothing."""
    now = torch.contiguous_format if before is torch.channels_last else torch.channels_last

    def step(layout, state=None):
        torch.manual_seed(1)
        weight = nn.Parameter(torch.randn(8, 4, 3, 3).to(memory_format=layout))
        optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
        if state is not None:
            optimizer.load_state_dict(copy.deepcopy(state))
            _lay_out_as_the_weights(optimizer)
            moments = [optimizer.state[weight][name] for name in ('exp_avg', 'exp_avg_sq')]
            assert all(moment.stride() == weight.stride() for moment in moments)
        weight.grad = torch.randn(8, 4, 3, 3).to(memory_format=layout)
        optimizer.step()
        return weight.detach(), optimizer.state_dict()

    _, state = step(before)
    torch.testing.assert_close(step(now, state)[0], step(before, state)[0])
