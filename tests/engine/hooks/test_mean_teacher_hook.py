"""The teacher, by hand and in whole runs on drawn scenes."""

from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import MODELS
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
    model, hook = Student(), MeanTeacherHook(decay)
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
    with pytest.raises(UserError, match='with a Linear; expected a MeanTeacherSegmentor'):
        hook.before_train(runner)


@pytest.mark.parametrize('decay', [0, 1, 1.5])
def test_decay_out_of_range_is_an_error(decay):
    with pytest.raises(UserError, match=rf'decay={decay}: expected a number in \(0, 1\)'):
        MeanTeacherHook(decay)


class Recorder(Hook):
    priority = 'VERY_LOW'

    def __init__(self, kill_after=None):
        self.kill_after = kill_after
        self.consistency = []
        self.training = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.consistency.append(outputs['aux.consistency'].item())
        (teacher,) = runner.model._teacher
        self.training.append((runner.model.training, teacher.training))
        if runner.iter + 1 == self.kill_after:
            raise KeyboardInterrupt


def scenes(start, count, labeled=True):
    return dict(
        type='ShapesDataset',
        start=start,
        count=count,
        size=32,
        pipeline=[dict(type='DrawShapesScene', with_seg_map=labeled), dict(type='PackSegInputs')],
    )


def train(work_dir, resume=False, kill_after=None):
    """Trains four iterations and gives the recorder and the runner."""
    model = tiny.model_config(
        type='MeanTeacherSegmentor',
        auxiliary_head=None,
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0),
    )
    model['decode_head']['num_classes'] = 7
    recorder = Recorder(kill_after)
    runner = Runner(
        model=model,
        work_dir=str(work_dir),
        train_dataloader=dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='PairSampler', shuffle=True),
            dataset=dict(
                type='SemiSegDataset', labeled=scenes(0, 3), unlabeled=scenes(100, 4, labeled=False)
            ),
        ),
        val_dataloader=dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=scenes(200, 2),
        ),
        val_evaluator=dict(type='IoUMetric'),
        val_cfg=dict(type='ValLoop'),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=4, val_interval=2),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.05, momentum=0.9)),
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2, save_best='mIoU')
        ),
        custom_hooks=[
            dict(type='IterationSeedHook'),
            dict(type='MeanTeacherHook', decay=0.9),
            recorder,
        ],
        randomness=dict(seed=0),
        default_scope='mmseg',
        log_level='ERROR',
        resume=resume,
        experiment_name=f'{work_dir.name}{resume}{kill_after}',
    )
    if kill_after:
        with pytest.raises(KeyboardInterrupt):
            runner.train()
    else:
        runner.train()
    return recorder, runner


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('whole')
    return work_dir, *train(work_dir)


def test_a_resumed_training_has_the_same_teacher(whole, tmp_path):
    work_dir, recorder, _ = whole
    train(tmp_path / 'cut', kill_after=3)
    resumed, _ = train(tmp_path / 'cut', resume=True)
    assert recorder.consistency[2:] == pytest.approx(resumed.consistency, rel=1e-5)
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
    (teacher,), student = runner.model._teacher, runner.model
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(plain.eval()(images), teacher.eval()(images))
    assert not torch.equal(student.decode_head.conv_seg.weight, teacher.decode_head.conv_seg.weight)


def test_validation_changes_the_mode_of_neither(whole):
    _, recorder, _ = whole
    assert recorder.training == [(True, False)] * 4
