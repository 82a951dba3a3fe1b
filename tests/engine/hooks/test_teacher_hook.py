"""The teacher, by hand and in whole runs on drawn scenes."""

from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmseg.registry import MODELS
from ranks import on_two_ranks, without_cuda
from teacher_training import train
from torch import nn

from mmseg_cct.engine.hooks import TeacherHook
from mmseg_cct.errors import UserError


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.teacher = None

    def set_teacher(self, teacher):
        object.__setattr__(self, 'teacher', teacher)


EveryStep = SimpleNamespace(should_update=lambda: True)


def averaged(decay, values):
    """Trains through `values`, the student's weight and running mean after each iteration."""
    model, hook = Student(), TeacherHook(decay)
    runner = SimpleNamespace(model=model, iter=0, max_iters=len(values), optim_wrapper=EveryStep)
    hook.before_run(runner)
    hook.before_train(runner)
    for runner.iter, (weight, mean) in enumerate(values):
        model.train()
        with torch.no_grad():
            model.norm.weight.fill_(weight)
            model.norm.running_mean.fill_(mean)
        hook.after_train_iter(runner, runner.iter)
    return model.teacher.norm


def test_it_is_a_plain_mean_at_first():
    norm = averaged(0.99, [(1.0, 10.0), (2.0, 20.0), (6.0, 0.0)])
    assert norm.weight.item() == pytest.approx(3.0)
    assert norm.running_mean.item() == pytest.approx(10.0)


def test_then_the_decay_is_alpha():
    # α_t = 0, 1/2, then min(2/3, 0.6), min(3/4, 0.6)
    norm = averaged(0.6, [(1.0, 10.0), (3.0, 0.0), (7.0, 5.0), (0.0, 50.0)])
    weight = 0.6 * (0.6 * 2 + 0.4 * 7)
    mean = 0.6 * (0.6 * 5 + 0.4 * 5) + 0.4 * 50
    assert norm.weight.item() == pytest.approx(weight)
    assert norm.running_mean.item() == pytest.approx(mean)


def test_iterations_that_only_accumulate_gradients_are_no_steps():
    model, hook = Student(), TeacherHook(0.99)
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), 1.0), accumulative_counts=4)
    runner = SimpleNamespace(model=model, iter=0, max_iters=10, optim_wrapper=wrapper)
    hook.before_run(runner)
    hook.before_train(runner)
    wrapper.initialize_count_status(model, 0, 10)
    for runner.iter in range(10):
        wrapper.update_params(model.norm.weight.sum())
        hook.after_train_iter(runner, runner.iter)
    # after 4, 8 and the last of 10 iterations, the weight is 0, -1 and -1.5
    assert hook.ema_model.steps == 3
    assert model.teacher.norm.weight.item() == pytest.approx((0 - 1 + model.norm.weight.item()) / 3)


def test_batch_statistics_leave_the_averaged_ones_alone():
    model, hook = Student(), TeacherHook(batch_statistics=True)
    runner = SimpleNamespace(model=model, iter=0, max_iters=1, optim_wrapper=EveryStep)
    hook.before_run(runner)
    hook.before_train(runner)
    hook.after_train_iter(runner, 0)
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


def test_the_teacher_stays_in_eval_mode():
    norm = averaged(0.9, [(1.0, 1.0)] * 2)
    assert not norm.training
    assert not norm.weight.requires_grad


def test_at_the_first_iteration_it_is_the_student_as_initialised():
    model, hook = Student(), TeacherHook()
    runner = SimpleNamespace(model=model, iter=0, max_iters=1)
    hook.before_run(runner)
    nn.init.constant_(model.norm.weight, 5.0)  # as the runner does, after `before_run`
    hook.before_train(runner)
    assert model.teacher.norm.weight.item() == 5


def test_another_model_is_an_error():
    hook = TeacherHook()
    runner = SimpleNamespace(model=nn.Linear(1, 1), iter=0, max_iters=1)
    hook.before_run(runner)
    with pytest.raises(UserError, match='with a Linear; expected a segmentor that takes a teacher'):
        hook.before_train(runner)


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (dict(decay=0), r'decay=0: expected a number in \(0, 1\)'),
        (dict(decay=1), r'decay=1: expected a number in \(0, 1\)'),
        (dict(evaluate='both'), "evaluate='both': expected one of student, teacher"),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(UserError, match=message):
        TeacherHook(**wrong)


@pytest.mark.parametrize('evaluate', ['student', 'teacher'])
def test_weights_without_some_of_the_layers_are_enough_to_start_from(evaluate):
    model, hook = Student(), TeacherHook(evaluate=evaluate)
    runner = SimpleNamespace(model=model, iter=0, max_iters=1, _resume=False)
    hook.before_run(runner)
    hook.after_load_checkpoint(runner, dict(state_dict={'norm.bias': torch.ones(1)}))
    nn.init.constant_(model.norm.weight, 5.0)
    hook.before_train(runner)
    assert model.teacher.norm.weight.item() == 5


STUDENT = dict(type='TeacherHook', decay=0.9)
TEACHER = dict(STUDENT, evaluate='teacher', batch_statistics=True)


class StartOfTheTeacher(Hook):
    """Keeps student and teacher as they are before the first iteration."""

    priority = 'LOWEST'

    def before_train(self, runner):
        (teacher,) = runner.model._teacher
        self.student, self.teacher = (
            {name: value.clone() for name, value in model.state_dict().items()}
            for model in (runner.model, teacher)
        )


def load(path):
    return torch.load(path, map_location='cpu', weights_only=False)


@pytest.fixture(scope='module')
def of_student(slow, tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('of_student')
    return work_dir, *train(work_dir, STUDENT)


def test_the_checkpoint_is_the_student(of_student):
    work_dir, _, runner = of_student
    checkpoint = load(work_dir / 'iter_4.pth')
    assert checkpoint['meta']['network'] == 'student'
    assert 'ema_state_dict' not in checkpoint
    (teacher,) = runner.model._teacher
    for name, value in runner.model.state_dict().items():
        assert torch.equal(checkpoint['state_dict'][name], value), name
    for name, value in teacher.state_dict().items():
        assert torch.equal(checkpoint['teacher_state_dict'][f'module.{name}'], value), name
    name = 'decode_head.conv_seg.weight'
    assert not torch.equal(teacher.state_dict()[name], runner.model.state_dict()[name])


def test_what_is_validated_is_the_student(of_student):
    _, _, runner = of_student
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config['decode_head']['num_classes'] = 7
    plain = MODELS.build(config).eval()
    plain.load_state_dict(
        {k: v for k, v in runner.model.state_dict().items() if not k.startswith('auxiliary_head')}
    )
    seen = []
    handle = runner.model.decode_head.upsample.register_forward_hook(
        lambda *call: seen.append(call[-1])
    )
    runner.val_loop.run()
    handle.remove()
    data = next(iter(runner.val_dataloader))
    with torch.no_grad():
        expected = plain(plain.data_preprocessor(data)['inputs'])
    torch.testing.assert_close(seen[0], expected)


@pytest.mark.parametrize('runs', ['of_student', 'of_teacher'])
def test_validation_changes_the_mode_of_neither(runs, request):
    _, recorder, _ = request.getfixturevalue(runs)
    assert recorder.training == [(True, False)] * 4


@pytest.mark.parametrize(
    ('evaluate', 'averaged'), [('student', 'teacher_state_dict'), ('teacher', 'ema_state_dict')]
)
def test_a_resumed_training_is_the_one_that_was_never_killed(evaluate, averaged, request, tmp_path):
    work_dir, recorder, _ = request.getfixturevalue(f'of_{evaluate}')

    def run(**kwargs):
        if evaluate == 'student':
            return train(tmp_path / 'cut', STUDENT, **kwargs)
        return train(tmp_path / 'cut', TEACHER, mean_teacher(), **kwargs)

    run(kill_after=3)
    resumed, _ = run(resume=True)
    for expected, actual in zip(recorder.outputs[2:], resumed.outputs, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5)
    expected, actual = load(work_dir / 'iter_4.pth'), load(tmp_path / 'cut/iter_4.pth')
    for key in ('state_dict', averaged):
        for name, value in expected[key].items():
            torch.testing.assert_close(actual[key][name], value, msg=name)


def test_without_a_teacher_in_the_checkpoint_it_starts_as_the_student(of_student, tmp_path):
    work_dir, _, _ = of_student
    checkpoint = load(work_dir / 'iter_2.pth')
    del checkpoint['teacher_state_dict']
    torch.save(checkpoint, tmp_path / 'iter_2.pth')
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_2.pth'))
    start = StartOfTheTeacher()
    recorder, _ = train(tmp_path, STUDENT, resume=True, hooks=[start])
    assert len(recorder.outputs) == 2
    for name, value in checkpoint['state_dict'].items():
        assert torch.equal(start.student[name], value), name
        assert torch.equal(start.teacher[name], value), name


def mean_teacher():
    return tiny.model_config(
        type='MeanTeacherSegmentor',
        auxiliary_head=None,
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0),
    )


@pytest.fixture(scope='module')
def of_teacher(slow, tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('of_teacher')
    return work_dir, *train(work_dir, TEACHER, mean_teacher())


def test_the_checkpoint_is_the_teacher_for_a_plain_encoder_decoder(of_teacher):
    work_dir, _, runner = of_teacher
    checkpoint = torch.load(work_dir / 'iter_4.pth', map_location='cpu', weights_only=False)
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config['decode_head']['num_classes'] = 7
    plain = MODELS.build(config)
    plain.load_state_dict(checkpoint['state_dict'])
    assert checkpoint['meta']['network'] == 'teacher'
    (teacher,), student = runner.model._teacher, runner.model
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(plain.eval()(images), teacher.eval()(images))
    assert not torch.equal(student.decode_head.conv_seg.weight, teacher.decode_head.conv_seg.weight)
