"""The memory layout in whole runs on drawn scenes."""

import pytest
import torch
from teacher_training import train


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
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
