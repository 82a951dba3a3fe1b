import copy
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.dist import all_reduce_params
from mmengine.hooks import Hook
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import OptimWrapper, PolyParamScheduler
from mmengine.runner.activation_checkpointing import turn_on_activation_checkpointing
from ranks import on_two_ranks, without_cuda
from teacher_training import train
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mmseg_cct.engine.hooks import ChannelsLastHook, CompileEncoderHook, FreezeHook
from mmseg_cct.engine.hooks.compile_encoder_hook import compile_encoder
from mmseg_cct.engine.hooks.resume_hook import match_memory_format
from mmseg_cct.errors import UserError


def network(groups):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(4, 4, 3, groups=groups), nn.Conv2d(4, 2, 3))


def is_channels_last(model):
    kernels = [weight for weight in model.parameters() if weight.dim() == 4]
    return all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


@pytest.mark.parametrize(
    'enabled, groups, converted',
    [(None, 4, True), (None, 2, False), (True, 1, True), (False, 4, False)],
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
def test_ddp_averages_the_gradients_in_the_new_layout(tmp_path):
    def wrap(_, model):
        return MMDistributedDataParallel(model)

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


def test_moments_of_another_layout_follow_their_weights():
    """A fused step would take one weight's moments for another's, and say nothing."""
    before, now = torch.channels_last, torch.contiguous_format

    def step(layout, state=None):
        torch.manual_seed(1)
        weight = nn.Parameter(torch.randn(8, 4, 3, 3).to(memory_format=layout))
        optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
        if state is not None:
            optimizer.load_state_dict(copy.deepcopy(state))
            match_memory_format(optimizer)
            moments = [optimizer.state[weight][name] for name in ('exp_avg', 'exp_avg_sq')]
            assert all(moment.stride() == weight.stride() for moment in moments)
        weight.grad = torch.randn(8, 4, 3, 3).to(memory_format=layout)
        optimizer.step()
        return weight.detach(), optimizer.state_dict()

    _, state = step(before)
    torch.testing.assert_close(step(now, state)[0], step(before, state)[0])


@pytest.mark.slow
def test_compiled_encoders_train_the_same_and_only_while_training(tmp_path, compiling):
    """By a compiler that counts what it compiles and runs."""
    calls = []

    def backend(graph, inputs):
        def run(*args):
            calls.append(len(inputs))
            return graph(*args)

        return run

    def losses(name, *hooks):
        teacher = dict(type='TeacherHook', decay=0.9)
        recorder, runner = train(tmp_path / name, teacher, hooks=hooks)
        return runner, [each['loss'] for each in recorder.outputs]

    plain, expected = losses('plain')
    runner, found = losses('compiled', CompileEncoderHook(backend))
    # a backbone and a neck of the student on two branches, and of the teacher on one
    assert len(calls) == 6 * 4
    assert found == pytest.approx(expected, rel=1e-4)
    saved = torch.load(tmp_path / 'compiled/iter_4.pth', weights_only=False)
    for key, weights in saved['state_dict'].items():
        torch.testing.assert_close(weights, plain.model.state_dict()[key], rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        runner.model.eval().backbone(torch.rand(1, 3, 40, 24))
    assert len(calls) == 6 * 4


def test_what_cannot_be_compiled_goes_on_with_a_line(messages, compiling):
    def backend(graph, inputs):
        raise RuntimeError('no compiler\nin two lines')

    plain, model = (tiny.build().train() for _ in range(2))
    images = torch.rand(2, 3, 32, 32)
    compile_encoder(model, backend)
    found = [model.extract_feat(images)[-1] for _ in range(2)]
    assert torch.equal(found[0], plain.extract_feat(images)[-1])
    assert [line.split(' is not compiled: ')[0] for line in messages] == ['ResNet', 'PSPNeck']
    assert all('no compiler in two lines' in line and '\n' not in line for line in messages)


def test_all_networks_that_a_segmentor_lists_are_compiled_and_laid_out():
    networks = [tiny.build(), tiny.build()]
    runner = SimpleNamespace(model=SimpleNamespace(networks=networks))
    for hook in (ChannelsLastHook(), CompileEncoderHook()):
        hook.before_train(runner)
    for network in networks:
        assert is_channels_last(network) and 'forward' in vars(network.backbone)


@pytest.mark.parametrize('how', ['with_cp', 'activation_checkpointing'])
def test_what_checkpoints_its_activations_is_not_compiled(messages, how):
    backbone = tiny.model_config().backbone
    backbone.with_cp = how == 'with_cp'
    model = tiny.build(backbone=backbone).train()
    if how == 'activation_checkpointing':
        turn_on_activation_checkpointing(model, ['backbone'])
    compile_encoder(model, lambda graph, inputs: pytest.fail('compiled'))
    assert messages == ['ResNet is not compiled: its activations are checkpointed']
    model.backbone(torch.rand(2, 3, 32, 32))
    assert model.neck.forward.__func__ is not type(model.neck).forward


def run_of(initial_lr=True):
    """A run that trains a head, in a warm-up's first iteration, and whose stem is frozen."""
    model = nn.ModuleDict(dict(stem=nn.Linear(2, 2), head=nn.Linear(2, 2)))
    groups = [dict(params=list(model[name].parameters()), lr=0.0) for name in ('stem', 'head')]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    if initial_lr:  # as a schedule keeps it
        for group, rate in zip(optimizer.param_groups, (0.0, 1.0)):
            group['initial_lr'] = rate
    return SimpleNamespace(
        model=model,
        optim_wrapper=OptimWrapper(optimizer),
        param_schedulers=None,  # of mmengine, where there is none
        logger=logging.root,
    )


@pytest.mark.parametrize(
    ('distributed', 'initial_lr', 'wanted'),
    [
        (False, True, (False, True)),
        (False, False, (False, False)),  # no schedule: the rate counts
        (True, True, (True, True)),  # DDP waits for every gradient
    ],
)
def test_a_rate_of_zero_means_no_gradient(distributed, initial_lr, wanted):
    run = run_of(initial_lr)
    model = run.model
    if distributed:
        run.model = MMDistributedDataParallel.__new__(MMDistributedDataParallel)
    FreezeHook().before_train(run)
    for module, answer in zip(model.values(), wanted):
        assert {parameter.requires_grad for parameter in module.parameters()} == {answer}


def test_a_schedule_that_lifts_the_rate_is_refused():
    run = run_of()
    scheduler = PolyParamScheduler(run.optim_wrapper, 'lr', eta_min=1e-4, end=3)
    run.param_schedulers = [scheduler]
    with pytest.raises(UserError, match=r'^param_scheduler\.eta_min=0\.0001: would lift .* 2 wei'):
        FreezeHook().before_train(run)
    scheduler.eta_min = 0.0
    FreezeHook().before_train(run)


def norms(model):
    return sum(isinstance(module, nn.BatchNorm2d) for module in model.modules())


class Watcher(Hook):
    """Counts norms and keeps metrics at each validation."""

    def __init__(self):
        self.in_validation, self.after_it, self.metrics = [], [], []

    def after_val_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.in_validation.append(norms(runner.model))

    def after_val_epoch(self, runner, metrics=None):
        self.after_it.append(norms(runner.model))
        self.metrics.append(metrics)


@pytest.mark.slow
def test_frozen_layers_and_merged_norms_leave_losses_weights_and_metrics_as_they_are(tmp_path):
    """Against gradients nobody uses, and a validation of the model itself."""
    keys = {'paramwise_cfg': dict(custom_keys={'backbone.layer1': dict(lr_mult=0.0)})}
    found = []
    for hooks in (['FreezeHook', 'FuseConvBNHook'], []):
        hooks, watcher = [dict(type=name) for name in hooks], Watcher()
        teacher = dict(type='TeacherHook', decay=0.9)
        work_dir = tmp_path / str(len(hooks))
        found.append((watcher, *train(work_dir, teacher, hooks=[*hooks, watcher], optim=keys)))
    (watcher, recorder, runner), (plain, expected, other) = found
    assert recorder.outputs == expected.outputs
    torch.testing.assert_close(runner.model.state_dict(), other.model.state_dict(), rtol=0, atol=0)
    frozen = {n for n, p in runner.model.named_parameters() if not p.requires_grad}
    assert frozen == {n for n, _ in runner.model.named_parameters() if 'backbone.layer1' in n}

    for merged, metrics in zip(watcher.metrics, plain.metrics, strict=True):
        assert merged == pytest.approx(metrics, abs=0.5)  # a pixel or two of 2048 at a tie
    assert norms(runner.model) == plain.in_validation[0] > 0
    assert watcher.in_validation == [0] * len(plain.in_validation)
    assert watcher.after_it == [norms(runner.model)] * 2
    (best,) = Path(runner.work_dir).glob('best_*')
    state = torch.load(best, weights_only=False)['state_dict']
    assert state.keys() == runner.model.state_dict().keys()
