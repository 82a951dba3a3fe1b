"""The memory layout in whole runs on drawn scenes."""

import pytest
import torch
from teacher_training import train


def test_the_training_agrees_and_the_teacher_has_the_layout_too(tmp_path):
    teacher = dict(type='TeacherHook', decay=0.9)
    changed, runner = train(tmp_path / 'with', teacher, hooks=[dict(type='ChannelsLastHook')])
    plain, _ = train(tmp_path / 'without', teacher)
    # The start is the same, and no draw has reached this loss yet; the noise has another order.
    here, there = (run.outputs[0]['decode.loss_ce'] for run in (changed, plain))
    assert here == pytest.approx(there, rel=1e-5)
    (copy,) = runner.model._teacher
    for model in (runner.model, copy):
        weight = model.backbone.layer1[0].conv1.weight  # 3 x 3, several channels
        assert weight.is_contiguous(memory_format=torch.channels_last)
        assert not weight.is_contiguous()
