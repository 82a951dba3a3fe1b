"""Validations and tests with merged norms, in a training of four iterations."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import teacher_training
import tiny
import torch
from mmengine.hooks import Hook
from mmseg.models import SegTTAModel
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.engine.hooks import FuseConvBNHook


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


@pytest.fixture(scope='module')
def runs(slow, tmp_path_factory):
    """With and without the hook."""
    found = []
    for enabled in (None, False):
        watcher = Watcher()
        hooks = [dict(type='FuseConvBNHook', enabled=enabled), watcher]
        work_dir = tmp_path_factory.mktemp('run')
        recorder, runner = teacher_training.train(work_dir, dict(type='TeacherHook'), hooks=hooks)
        found.append((watcher, recorder, runner))
    return found


def test_the_model_has_no_norms_in_a_validation_and_all_after_it(runs):
    (watcher, _, runner), (plain, *_) = runs
    assert norms(runner.model) == plain.in_validation[0] > 0
    assert watcher.in_validation == [0] * len(plain.in_validation)
    assert watcher.after_it == [norms(runner.model)] * 2


def test_metrics_stay_and_the_training_notices_nothing(runs):
    (watcher, recorder, runner), (plain, expected, other) = runs
    for found, metrics in zip(watcher.metrics, plain.metrics, strict=True):
        assert found == pytest.approx(metrics, abs=0.5)  # a pixel or two of 2048 at a tie
    assert recorder.outputs == expected.outputs
    torch.testing.assert_close(runner.model.state_dict(), other.model.state_dict(), rtol=0, atol=0)


def test_the_best_checkpoint_has_the_norms(runs):
    _, _, runner = runs[0]
    (best,) = Path(runner.work_dir).glob('best_*')
    state = torch.load(best, weights_only=False)['state_dict']
    assert state.keys() == runner.model.state_dict().keys()


@torch.no_grad()
def test_views_are_averaged_with_merged_norms():
    model = SegTTAModel(MODELS.build(tiny.model_config())).eval()
    runner, hook = SimpleNamespace(model=model), FuseConvBNHook()
    segmentor = model.module
    view = [torch.randint(256, (3, 32, 32), dtype=torch.uint8)]
    sample = SegDataSample(metainfo=dict(ori_shape=(32, 32), img_shape=(32, 32)))
    hook.before_test_iter(runner, 0, dict(inputs=[view, view], data_samples=[[sample], [sample]]))
    assert runner.model is model and norms(model) == 0
    hook.before_test_iter(runner, 1, None)
    hook.after_test_epoch(runner)
    assert model.module is segmentor and norms(model) > 0


@pytest.mark.parametrize('averaged', [False, True])
def test_domains_of_which_a_batch_would_check_one_stay_as_they_are(averaged):
    segmentor = MODELS.build(tiny.multi_domain_config())
    model = SegTTAModel(segmentor) if averaged else segmentor
    runner, hook = SimpleNamespace(model=model), FuseConvBNHook()
    hook.before_val_iter(runner, 0, {})
    assert runner.model is model and (not averaged or model.module is segmentor)
    hook.after_val_epoch(runner)
    assert runner.model is model
