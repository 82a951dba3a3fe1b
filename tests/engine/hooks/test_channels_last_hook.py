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
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from mmseg_cct.engine.hooks import ChannelsLastHook


def network(groups):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(4, 4, 3, groups=groups), nn.Conv2d(4, 2, 3))


def is_channels_last(model):
    return all(conv.weight.is_contiguous(memory_format=torch.channels_last) for conv in model)


@pytest.mark.parametrize(
    'enabled, groups, converted',
    [(None, 4, True), (None, 1, False), (None, 2, False), (True, 1, True), (False, 4, False)],
)
def test_depthwise_convolutions_decide_unless_told(enabled, groups, converted):
    model = network(groups)
    ChannelsLastHook(enabled).before_train(SimpleNamespace(model=model))
    # a depthwise 3×3 weight, (4, 1, 3, 3), is of both formats: look at the dense one
    assert is_channels_last(model[1:]) == converted


def test_values_stay():
    image = torch.rand(1, 4, 8, 8)
    plain, model = network(4), network(4)
    ChannelsLastHook(True).before_train(SimpleNamespace(model=model))
    torch.testing.assert_close(model(image), plain(image))
    assert model(image).is_contiguous(memory_format=torch.channels_last)


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


def test_weights_are_in_the_layout(runs):
    (_, runner), (_, plain) = runs
    weight = runner.model.backbone.layer1[0].conv1.weight  # 3 x 3, several channels
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
    kernels = [weight for weight in teacher.parameters() if weight.dim() == 4]
    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)
    assert not all(kernel.is_contiguous() for kernel in kernels)


def test_the_teacher_is_in_the_layout_too(runs):
    (teacher,) = runs[0][1].model._teacher
    weight = teacher.backbone.layer1[0].conv1.weight
    assert weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


class TestMomentsOfAnotherLayout:
    """A fused step would take one weight's moments for another's, and say nothing.

    Each step is held against the equation, with the gradients that it got: where a layout sums in
    another order, AdamW makes a step of any size of a gradient that is rounding alone, so whole
    trainings have no bound.
    """

    STEPS = 3

    @pytest.fixture
    def steps(self, slow, cct, monkeypatch):
        """A function that resumes in the other layout and gives before and after of each step."""
        tiny.widen(cct.config.model)
        cct.config.optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=0.01))
        cct.write()

        def train(name, channels_last, **kwargs):
            hook = dict(type='ChannelsLastHook', enabled=channels_last)
            cct.train(
                name, {'default_hooks.memory_format': hook, **kwargs.pop('options', {})}, **kwargs
            )

        def resume(before):
            train('whole', before, options={'train_cfg.max_iters': 3})
            checkpoint = cct.folder / 'whole' / 'iter_3.pth'
            seen = []
            handles = [
                register(lambda optimizer, *_: seen.append(snapshot(optimizer)))
                for register in (
                    register_optimizer_step_pre_hook,
                    register_optimizer_step_post_hook,
                )
            ]
            try:
                train('other', not before, resume=str(checkpoint))
            finally:
                for handle in handles:
                    handle.remove()
            return cct.load(checkpoint)['optimizer']['state'], list(zip(seen[::2], seen[1::2]))

        return resume

    @pytest.mark.parametrize('before', [True, False])
    def test_they_follow_their_weights(self, steps, before):
        saved, pairs = steps(before)
        assert len(pairs) == self.STEPS
        first = pairs[0][0]
        assert any(
            saved[i]['exp_avg'].stride() != weight['stride'] for i, weight in enumerate(first)
        )
        for index, weight in enumerate(first):
            for moment in ('exp_avg', 'exp_avg_sq'):
                assert torch.equal(weight[moment], saved[index][moment].double())
        for was, became in pairs:
            for weight, after in zip(was, became, strict=True):
                expected, bound = adamw_step(weight)
                assert ((after['weight'] - expected).abs() <= bound).all()


def snapshot(optimizer):
    """What AdamW's step of each weight is made of, in float64."""
    return [
        dict(
            weight=weight.detach().double(),
            gradient=weight.grad.double(),
            stride=weight.stride(),
            **{name: value.double() for name, value in optimizer.state[weight].items()},
            **{name: group[name] for name in ('lr', 'betas', 'eps', 'weight_decay')},
        )
        for group in optimizer.param_groups
        for weight in group['params']
    ]


def adamw_step(weight):
    """The weight after AdamW's step, and how far float32 may be from it.

    The step rounds 16 times: the decay 2, the average of gradients 4, that of squares 4 of which
    the root leaves half, the root 1, the correction 2, the sum with ε 1, the quotient 1, the rate
    2, the difference 1. Each time by 2^-24 of the largest value that is in it.
    """
    w, gradient, step = weight['weight'], weight['gradient'], weight['step'] + 1
    beta1, beta2 = weight['betas']
    mean = beta1 * weight['exp_avg'] + (1 - beta1) * gradient
    square = beta2 * weight['exp_avg_sq'] + (1 - beta2) * gradient**2
    scale = weight['lr'] / (1 - beta1**step) / ((square / (1 - beta2**step)).sqrt() + weight['eps'])
    expected = w * (1 - weight['lr'] * weight['weight_decay']) - scale * mean
    return expected, 16 * 2**-24 * (w.abs() + scale * (weight['exp_avg'].abs() + gradient.abs()))
