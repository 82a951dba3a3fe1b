"""The figures in the log, the diagram, and that training does not notice."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import DATASETS, MODELS
from ranks import on_two_ranks, without_cuda

from mmseg_cct.analysis.calibration import write_calibration
from mmseg_cct.analysis.ranking import load_training_model
from mmseg_cct.engine.hooks import CalibrationHook
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation.calibration import CalibrationCounts
from mmseg_cct.evaluation.score_maps import resize_nearest, score_maps

FIGURES = {
    f'{score}.{figure}'
    for score in ('confidence', 'agreement')
    for figure in ('separation', 'calibration_error')
}

BASELINE = {
    'model.type': 'EncoderDecoder',
    'model.auxiliary_head': None,
    'train_dataloader.dataset.unlabeled': None,
}


class Recorder(Hook):
    """Keeps every loss and what each validation logged."""

    priority = 'LOWEST'

    def __init__(self):
        self.losses, self.validations = [], []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.losses.append({key: value.item() for key, value in outputs.items()})

    def after_val_epoch(self, runner, metrics=None):
        scalars = runner.message_hub.log_scalars
        self.validations.append(
            {key[4:]: scalars[key].current() for key in scalars if key.startswith('val/')}
        )


def train(tiny_cct, work_dir, *hooks, **changes):
    """Two iterations of the tiny model, with a validation after each."""
    config = Config.fromfile(tiny_cct.config)
    config.merge_from_dict(changes)
    config.update(
        work_dir=str(work_dir),
        val_dataloader=dict(
            config.test_dataloader, sampler=dict(type='DefaultSampler', shuffle=False)
        ),
        val_cfg=dict(type='ValLoop'),
        val_evaluator=dict(type='ClassIoUMetric', iou_metrics=['mIoU']),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=2, val_interval=1),
        default_hooks=dict(logger=None, checkpoint=dict(type='CheckpointHook', by_epoch=False)),
        custom_hooks=[Recorder(), *hooks],
        experiment_name=work_dir.name,
    )
    runner = Runner.from_cfg(config)
    runner.train()
    return found(runner, Recorder), runner


def found(runner, kind):
    (hook,) = (hook for hook in runner.hooks if isinstance(hook, kind))
    return hook


@pytest.fixture(scope='module')
def with_hook(tiny_cct, tmp_path_factory):
    return train(
        tiny_cct, tmp_path_factory.mktemp('with'), dict(type='CalibrationHook', num_images=4)
    )


def test_training_does_not_notice_the_hook(tiny_cct, with_hook, tmp_path):
    recorder, runner = with_hook
    expected, plain = train(tiny_cct, tmp_path / 'without')
    assert recorder.losses == expected.losses and len(recorder.losses) == 2
    weights, others = runner.model.state_dict(), plain.model.state_dict()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert [module.training for module in runner.model.modules()] == [
        module.training for module in plain.model.modules()
    ]


def test_each_validation_logs_both_scores(with_hook):
    recorder, _ = with_hook
    assert len(recorder.validations) == 2
    for logged in recorder.validations:
        assert logged.keys() >= FIGURES and 'mIoU' in logged
        assert all(0 <= logged[name] <= 1 for name in FIGURES)
    assert recorder.validations[0] != recorder.validations[1]


def test_the_files_are_those_of_the_tool(tiny_cct, with_hook, tmp_path):
    recorder, runner = with_hook
    checkpoint = f'{runner.work_dir}/iter_2.pth'
    expected = write_calibration(
        tiny_cct.config, checkpoint, str(tmp_path / 'out'), split='test', device='cpu'
    )
    expected = {name: expected[name] for name in ('confidence', 'agreement')}
    with open(f'{runner.work_dir}/calibration.json', encoding='utf-8') as file:
        assert json.load(file) == expected
    last = recorder.validations[-1]
    assert last['agreement.separation'] == expected['agreement']['separation']
    with open(f'{runner.work_dir}/calibration.png', 'rb') as file:
        assert file.read(4) == b'\x89PNG'


def test_evenly_spaced_images(tiny_cct, tmp_path):
    _, runner = train(tiny_cct, tmp_path, dict(type='CalibrationHook', num_images=2, seed=5))
    hook = found(runner, CalibrationHook)
    assert hook.batches == {0, 3}
    config = Config.fromfile(tiny_cct.config)
    model = load_training_model(config, f'{tmp_path}/iter_2.pth', 'cpu')
    counts = CalibrationCounts(model.auxiliary_head.num_decoders)
    dataset = DATASETS.build(config.test_dataloader.dataset)
    for index in (0, 3):
        item = dataset[index]
        truth = item['data_samples'].gt_sem_seg.data
        scores, labels = score_maps(model, item, ('sky', 'road', 'car'), seed=5)
        counts.add(scores, labels, resize_nearest(truth, labels.shape))
    for name, expected in counts.pixels_and_right.items():
        np.testing.assert_array_equal(hook.counts.pixels_and_right[name], expected)


def test_a_baseline_has_confidence_alone(tiny_cct, tmp_path):
    recorder, _ = train(tiny_cct, tmp_path, dict(type='CalibrationHook'), **BASELINE)
    logged = {name for name in recorder.validations[0] if '.separation' in name}
    assert logged == {'confidence.separation'}


@without_cuda
def test_the_figures_are_those_of_the_images_of_all_processes(tmp_path):
    torch.manual_seed(0)
    confidences = torch.rand(2, 1, 8, 8)
    images = [
        (dict(confidence=confidence), torch.zeros(1, 8, 8), (confidence < 0.7 - 0.4 * rank).long())
        for rank, confidence in enumerate(confidences)
    ]

    def logged(*chosen):
        hook, figures = CalibrationHook(), {}
        hook.counts = CalibrationCounts(0)
        for image in chosen:
            hook.counts.add(*image)
        hub = SimpleNamespace(update_scalar=figures.__setitem__)
        hook.after_val_epoch(SimpleNamespace(message_hub=hub))
        return figures

    alone, other, together = logged(images[0]), logged(images[1]), logged(*images)
    assert together.keys() == {'val/confidence.separation', 'val/confidence.calibration_error'}
    assert alone != together != other
    assert on_two_ranks(lambda rank: logged(images[rank]), tmp_path) == [together] * 2


def test_mistakes_are_named(tiny_cct, tmp_path):
    with pytest.raises(
        UserError, match=r'CalibrationHook\.num_images=0: expected a whole number from 1'
    ):
        CalibrationHook(num_images=0)
    runner = SimpleNamespace(model=torch.nn.Conv2d(1, 1, 1))
    with pytest.raises(UserError, match=r'model\.type=Conv2d; expected an EncoderDecoder'):
        CalibrationHook().before_train(runner)
    head = dict(type='FCNHead', in_channels=6, channels=4, num_classes=2, out_channels=1)
    model = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    model['decode_head'] = dict(head, threshold=0.3, norm_cfg=dict(type='BN'))
    with pytest.raises(UserError, match=r'out_channels=1: expected one output for each class'):
        CalibrationHook().before_train(SimpleNamespace(model=MODELS.build(model)))
