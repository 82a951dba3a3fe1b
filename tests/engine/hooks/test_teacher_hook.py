import copy
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.optim import OptimWrapper, OptimWrapperDict
from ranks import on_two_ranks, without_cuda
from teacher_training import train
from torch import nn

from mmseg_cct.engine.hooks import SyncStatisticsHook, TeacherHook
from mmseg_cct.engine.hooks.teacher_hook import MultiTensorEMA


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.teacher = None

    def set_teacher(self, teacher):
        object.__setattr__(self, 'teacher', teacher)


EveryStep = SimpleNamespace(should_update=lambda: True)


def started(hook, model, initialise=None, **runner):
    """A runner after the hook's `before_train`; before that it initialises the model."""
    defaults = dict(iter=0, max_iters=1, optim_wrapper=EveryStep, _resume=False)
    runner = SimpleNamespace(model=model, **{**defaults, **runner})
    hook.before_run(runner)
    if initialise is not None:
        initialise(runner)
    hook.before_train(runner)
    return runner


def averaged(decay, values):
    """Trains through `values`, the student's weight and running mean after each iteration."""
    model, hook = Student(), TeacherHook(decay)
    runner = started(hook, model, max_iters=len(values))
    for runner.iter, (weight, mean) in enumerate(values):
        model.train()
        with torch.no_grad():
            model.norm.weight.fill_(weight)
            model.norm.running_mean.fill_(mean)
        hook.after_train_iter(runner, runner.iter)
    return model.teacher.norm


def test_it_is_a_plain_mean_until_the_decay_is_alpha():
    # α_t = 0, 1/2, then min(2/3, 0.6), min(3/4, 0.6)
    norm = averaged(0.6, [(1.0, 10.0), (3.0, 0.0), (7.0, 5.0), (0.0, 50.0)])
    assert norm.weight.item() == pytest.approx(0.6 * (0.6 * 2 + 0.4 * 7))
    assert norm.running_mean.item() == pytest.approx(0.6 * (0.6 * 5 + 0.4 * 5) + 0.4 * 50)
    assert not norm.training and not norm.weight.requires_grad


def test_of_several_optimizers_that_accumulate_gradients_a_step_of_any_counts():
    model, hook = Student(), TeacherHook(0.99)
    wrappers = OptimWrapperDict(
        weight=OptimWrapper(torch.optim.SGD([model.norm.weight], 1.0), accumulative_counts=2),
        bias=OptimWrapper(torch.optim.SGD([model.norm.bias], 1.0), accumulative_counts=4),
    )
    runner = started(hook, model, max_iters=8, optim_wrapper=wrappers)
    wrappers.initialize_count_status(model, 0, 8)
    for runner.iter in range(8):
        for name, wrapper in wrappers.items():
            wrapper.update_params(getattr(model.norm, name).sum())
        hook.after_train_iter(runner, runner.iter)
    assert hook.ema_model.steps == 4


def test_batch_statistics_leave_the_averaged_ones_alone():
    model, hook = Student(), TeacherHook(batch_statistics=True)
    hook.after_train_iter(started(hook, model), 0)
    batch = torch.tensor([[1.0], [5.0]])
    expected = nn.BatchNorm1d(1)(batch)  # normalised by its own mean and variance
    torch.testing.assert_close(model.teacher.norm(batch), expected, check_stride=False)
    assert model.teacher.norm.running_mean.item() == 0


@without_cuda
def test_ranks_whose_statistics_differ_have_the_same_teacher(tmp_path):
    def trained(rank):
        return averaged(0.9, [(1.0, 10.0 + rank), (3.0, 20.0 + rank)]).state_dict()

    first, second = on_two_ranks(trained, tmp_path)
    assert first['running_mean'].item() == pytest.approx(15.5)  # of 15 and 16
    assert first['num_batches_tracked'].dtype == torch.long
    for name, value in first.items():
        assert torch.equal(second[name], value), name


@pytest.mark.parametrize(
    ('evaluate', 'loads', 'resume'),
    [('student', False, False), ('teacher', True, False), ('student', True, True)],
)
def test_at_first_it_is_the_student_as_initialised_loaded_or_resumed_without_one(
    evaluate, loads, resume, messages
):
    def initialise(runner):
        if loads:  # weights without some of the layers
            hook.after_load_checkpoint(runner, dict(state_dict={'norm.bias': torch.ones(1)}))
        nn.init.constant_(runner.model.norm.weight, 5.0)

    hook, model = TeacherHook(evaluate=evaluate), Student()
    started(hook, model, initialise, _resume=resume)
    assert model.teacher.norm.weight.item() == 5
    assert len(messages) == resume and all('no teacher_state_dict' in line for line in messages)


@pytest.mark.parametrize(('evaluate', 'validated'), [('student', 1), ('teacher', 2)])
def test_what_is_validated_is_the_student_or_the_teacher(evaluate, validated):
    hook, model = TeacherHook(evaluate=evaluate), Student()
    runner = started(hook, model)
    nn.init.constant_(model.teacher.norm.weight, 2.0)
    hook.before_val_epoch(runner)
    assert model.norm.weight.item() == validated
    hook.after_val_epoch(runner)
    assert model.norm.weight.item() == 1 and model.teacher.norm.weight.item() == 2


RUNS = dict(
    student=dict(hook=dict(type='TeacherHook', decay=0.9)),
    teacher=dict(
        hook=dict(type='TeacherHook', decay=0.9, evaluate='teacher', batch_statistics=True),
        model=tiny.mean_teacher_config(),
    ),
)
OTHERS = dict(student='teacher_state_dict', teacher='ema_state_dict')  # where the other network is


def load(path):
    return torch.load(path, map_location='cpu', weights_only=False)


@pytest.fixture(scope='module', params=RUNS)
def whole(slow, request, tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('whole')
    return request.param, work_dir, *train(work_dir, **copy.deepcopy(RUNS[request.param]))


def test_a_checkpoint_holds_both_networks_and_says_which_is_evaluated(whole):
    evaluate, work_dir, recorder, runner = whole
    assert recorder.training == [(True, False)] * 4  # validations changed no mode
    checkpoint = load(work_dir / 'iter_4.pth')
    assert checkpoint['meta']['network'] == evaluate
    networks = [runner.model.state_dict(), runner.model._teacher[0].state_dict()]
    own, other = networks if evaluate == 'student' else networks[::-1]
    for name, value in own.items():
        assert torch.equal(checkpoint['state_dict'][name], value), name
    for name, value in other.items():
        assert torch.equal(checkpoint[OTHERS[evaluate]][f'module.{name}'], value), name
    name = 'decode_head.conv_seg.weight'
    assert not torch.equal(own[name], other[name])


# of the student, two ranks resume in trust/test_distributed.py
@pytest.mark.parametrize('whole', ['teacher'], indirect=True)
def test_a_resumed_training_is_the_one_that_was_never_killed(whole, tmp_path):
    evaluate, work_dir, recorder, _ = whole
    train(tmp_path / 'cut', **copy.deepcopy(RUNS[evaluate]), kill_after=3)
    resumed, _ = train(tmp_path / 'cut', **copy.deepcopy(RUNS[evaluate]), resume=True)
    for expected, actual in zip(recorder.outputs[2:], resumed.outputs, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5)
    expected, actual = load(work_dir / 'iter_4.pth'), load(tmp_path / 'cut/iter_4.pth')
    for key in ('state_dict', OTHERS[evaluate]):
        for name, value in expected[key].items():
            torch.testing.assert_close(actual[key][name], value, msg=name)


def test_an_average_that_was_laid_out_anew_is_averaged_on():
    model = nn.Conv2d(2, 3, 3)
    average = MultiTensorEMA(model, momentum=0.999, gamma=1)
    average.module.to(memory_format=torch.channels_last)
    for _ in range(3):
        nn.init.normal_(model.weight)
        average.update_parameters(model)
    torch.testing.assert_close(average.module.weight, model.weight, rtol=1e-2, atol=1e-2)


def after_an_iteration(rank):
    layers = dict(own=nn.BatchNorm1d(3), none=nn.BatchNorm1d(3, track_running_stats=False))
    model = nn.ModuleDict(layers)
    images = torch.rand(8, 3, generator=torch.Generator().manual_seed(rank))
    for layer in model.values():
        layer(images)
    own = model['own'].running_mean.clone(), model['own'].running_var.clone()
    hook, runner = SyncStatisticsHook(), SimpleNamespace(model=model)
    hook.before_train(runner)
    hook.after_train_iter(runner, 0)
    return own, (model['own'].running_mean, model['own'].running_var)


@without_cuda
def test_statistics_become_the_mean_of_the_ranks_and_one_process_keeps_its_own(tmp_path):
    (first, synced), (second, also) = on_two_ranks(after_an_iteration, tmp_path)
    for one, other, result, same in zip(first, second, synced, also):
        assert not torch.equal(one, other)
        torch.testing.assert_close(result, (one + other) / 2)
        assert torch.equal(result, same)
    own, kept = after_an_iteration(0)
    assert all(map(torch.equal, own, kept))
