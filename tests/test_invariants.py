"""DESIGN's invariants on whole runs: data on disk, loader, hooks, model, optimiser, checkpoints.

That no unsupervised loss reaches the main decoder, and that a key contains "loss" only if it is
optimised, is in `models/segmentors/test_cct.py`.
"""

import numpy as np
import pytest
import tiny
import torch
import world
from mmengine.hooks import Hook
from mmengine.runner import Runner

pytestmark = pytest.mark.slow

CLASSES = ('ground', 'thing', 'other')
MAX_ITERS = 6
NUM_LABELED, NUM_UNLABELED = 3, 5

LOAD_IMAGE = [dict(type='LoadImageFromFile')]
AUGMENT = [
    dict(type='RandomResize', scale=(40, 32), ratio_range=(0.8, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(32, 32)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]


class Recorder(Hook):
    """Keeps what each iteration logged, and kills the run where it is told to."""

    priority = 'VERY_LOW'

    def __init__(self, kill_after=None):
        self.kill_after = kill_after
        self.logged = {}
        self.weights = []
        self.has_ground_truth = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.weights.append(runner.model.auxiliary_head.loss_consistency.loss_weight)
        self.has_ground_truth.extend(
            'gt_sem_seg' in sample for sample in data_batch['data_samples']['unlabeled']
        )

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.logged[runner.iter] = {key: value.item() for key, value in outputs.items()}
        if runner.iter + 1 == self.kill_after:
            raise KeyboardInterrupt


@pytest.fixture(scope='module')
def data_root(tmp_path_factory):
    """Images for all, masks for the labelled ones alone."""
    root = tmp_path_factory.mktemp('set')
    rng = np.random.default_rng(0)
    for index in range(NUM_LABELED + NUM_UNLABELED):
        world.write_scene(root, index, rng, with_mask=index < NUM_LABELED)
    return root


def dataset(root, subset):
    load = [*LOAD_IMAGE, dict(type='LoadAnnotations')] if subset == 'labeled' else LOAD_IMAGE
    return dict(
        type='FolderDataset',
        data_root=str(root),
        image_dir='images',
        mask_dir='masks',
        classes=CLASSES,
        subset=subset,
        pipeline=load + AUGMENT,
    )


def train(root, work_dir, num_workers=0, seed=0, resume=False, kill_after=None):
    """Runs a training and gives its recorder and its final weights."""
    recorder = Recorder(kill_after)
    runner = Runner(
        model=tiny.model_config(),
        work_dir=str(work_dir),
        train_dataloader=dict(
            batch_size=2,
            num_workers=num_workers,
            sampler=dict(type='PairSampler'),
            dataset=dict(
                type='SemiSegDataset',
                labeled=dataset(root, 'labeled'),
                unlabeled=dataset(root, 'unlabeled'),
            ),
        ),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=MAX_ITERS),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=1e-4)),
        param_scheduler=[dict(type='PolyLR', power=0.9, by_epoch=False, end=MAX_ITERS)],
        default_hooks=dict(
            logger=None, checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=3)
        ),
        custom_hooks=[
            dict(type='IterationSeedHook'),
            dict(
                type='RampUpHook',
                attribute='auxiliary_head.loss_consistency.loss_weight',
                end=30.0,
                fraction=0.8,
            ),
            recorder,
        ],
        randomness=dict(seed=seed),
        resume=resume,
        default_scope='mmseg',
        log_processor=dict(by_epoch=False),
        log_level='ERROR',
        experiment_name=work_dir.name,
    )
    try:
        runner.train()
    except KeyboardInterrupt:
        assert kill_after is not None
    # ends the workers at once; left to the garbage collector, each of them takes five seconds
    runner.train_loop.dataloader_iterator = None
    return recorder, {name: p.clone() for name, p in runner.model.state_dict().items()}


@pytest.fixture(scope='module')
def uninterrupted(data_root, tmp_path_factory):
    return train(data_root, tmp_path_factory.mktemp('uninterrupted'))


def assert_same_run(actual, expected, tolerance=0.0):
    assert actual[0].logged.keys() == expected[0].logged.keys()
    for iteration, logged in expected[0].logged.items():
        assert actual[0].logged[iteration] == pytest.approx(logged, rel=tolerance), iteration
    for name, weight in expected[1].items():
        torch.testing.assert_close(actual[1][name], weight, rtol=tolerance, atol=tolerance)


def test_trains_without_a_mask_of_an_unlabelled_image(uninterrupted, data_root):
    recorder, weights = uninterrupted
    assert len(list((data_root / 'masks').iterdir())) == NUM_LABELED
    assert not any(recorder.has_ground_truth)
    assert list(recorder.logged) == list(range(MAX_ITERS))
    assert all(np.isfinite(list(logged.values())).all() for logged in recorder.logged.values())
    assert all(weight.isfinite().all() for weight in weights.values())


def test_losses_differ_between_iterations(uninterrupted):
    # or the comparisons below would say nothing
    for key in ('loss', 'decode.loss_ce', 'aux.consistency'):
        values = [logged[key] for logged in uninterrupted[0].logged.values()]
        assert len(set(values)) == MAX_ITERS


def test_the_weight_follows_its_ramp(uninterrupted):
    length = 0.8 * MAX_ITERS
    assert uninterrupted[0].weights == pytest.approx(
        [30 * np.exp(5 * (min(t / length, 1) - 1)) for t in range(MAX_ITERS)]
    )


@pytest.mark.parametrize('num_workers', [0, 2])
def test_the_same_seed_gives_the_same_run(uninterrupted, data_root, tmp_path, num_workers):
    assert_same_run(train(data_root, tmp_path, num_workers), uninterrupted)


def test_another_seed_gives_another_run(uninterrupted, data_root, tmp_path):
    other = train(data_root, tmp_path, seed=1, kill_after=1)
    assert other[0].logged[0]['loss'] != uninterrupted[0].logged[0]['loss']


@pytest.mark.parametrize(('num_workers', 'kill_after'), [(0, 5), (2, 4)])
def test_a_killed_and_resumed_run_is_the_uninterrupted_one(
    uninterrupted, data_root, tmp_path, num_workers, kill_after
):
    killed = train(data_root, tmp_path, num_workers, kill_after=kill_after)
    assert list(killed[0].logged) == list(range(kill_after))
    resumed = train(data_root, tmp_path, num_workers, resume=True)
    assert list(resumed[0].logged) == list(range(3, MAX_ITERS))  # from the last checkpoint on
    for iteration, logged in killed[0].logged.items():
        assert logged == pytest.approx(uninterrupted[0].logged[iteration], rel=1e-6)
    resumed[0].logged = {**killed[0].logged, **resumed[0].logged}
    assert_same_run(resumed, uninterrupted, tolerance=1e-6)
