"""The teacher, by hand and in whole runs on drawn scenes."""

from types import SimpleNamespace

import pytest
import tiny
import torch
from mmseg.registry import MODELS
from ranks import on_two_ranks, without_cuda
from teacher_training import train
from torch import nn

from mmseg_cct.engine.hooks import MeanTeacherHook
from mmseg_cct.errors import UserError


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.teacher = None

    def set_teacher(self, teacher):
        object.__setattr__(self, 'teacher', teacher)


def averaged(decay, values):
    """Trains through `values`, the student's weight and running mean after each iteration."""
    model, hook = Student(), MeanTeacherHook(decay, batch_statistics=False)
    runner = SimpleNamespace(model=model, iter=0, max_iters=len(values))
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


def test_batch_statistics_leave_the_averaged_ones_alone():
    model, hook = Student(), MeanTeacherHook(batch_statistics=True)
    runner = SimpleNamespace(model=model, iter=0, max_iters=1)
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
    model, hook = Student(), MeanTeacherHook()
    runner = SimpleNamespace(model=model, iter=0, max_iters=1)
    hook.before_run(runner)
    nn.init.constant_(model.norm.weight, 5.0)  # as the runner does, after `before_run`
    hook.before_train(runner)
    assert model.teacher.norm.weight.item() == 5


def test_another_model_is_an_error():
    hook = MeanTeacherHook()
    runner = SimpleNamespace(model=nn.Linear(1, 1), iter=0, max_iters=1)
    hook.before_run(runner)
    with pytest.raises(UserError, match='with a Linear; expected a segmentor that takes a teacher'):
        hook.before_train(runner)


@pytest.mark.parametrize('decay', [0, 1, 1.5])
def test_decay_out_of_range_is_an_error(decay):
    with pytest.raises(UserError, match=rf'decay={decay}: expected a number in \(0, 1\)'):
        MeanTeacherHook(decay)


HOOK = dict(type='MeanTeacherHook', decay=0.9)


def model_config():
    return tiny.model_config(
        type='MeanTeacherSegmentor',
        auxiliary_head=None,
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0),
    )


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('whole')
    return work_dir, *train(work_dir, HOOK, model_config())


def test_a_resumed_training_has_the_same_teacher(whole, tmp_path):
    work_dir, recorder, _ = whole
    train(tmp_path / 'cut', HOOK, model_config(), kill_after=3)
    resumed, _ = train(tmp_path / 'cut', HOOK, model_config(), resume=True)
    expected, actual = (
        [outputs['aux.consistency'] for outputs in each]
        for each in (recorder.outputs[2:], resumed.outputs)
    )
    assert actual == pytest.approx(expected, rel=1e-5)
    for key in ('state_dict', 'ema_state_dict'):
        expected, actual = (
            torch.load(folder / 'iter_4.pth', map_location='cpu', weights_only=False)[key]
            for folder in (work_dir, tmp_path / 'cut')
        )
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value, msg=name)


def test_the_checkpoint_is_the_teacher_for_a_plain_encoder_decoder(whole):
    work_dir, _, runner = whole
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


def test_validation_changes_the_mode_of_neither(whole):
    _, recorder, _ = whole
    assert recorder.training == [(True, False)] * 4


def test_weights_without_some_of_the_layers_are_enough_to_start_from():
    model, hook = Student(), MeanTeacherHook()
    runner = SimpleNamespace(model=model, iter=0, max_iters=1, _resume=False)
    hook.before_run(runner)
    hook.after_load_checkpoint(runner, dict(state_dict={'norm.bias': torch.ones(1)}))
    nn.init.constant_(model.norm.weight, 5.0)
    hook.before_train(runner)
    assert model.teacher.norm.weight.item() == 5
