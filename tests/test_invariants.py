"""DESIGN's invariants on whole runs: data on disk, loader, hooks, model, optimiser, checkpoints.

That no unsupervised loss reaches the main decoder, and that a key contains "loss" only if it is
optimised, is in `models/segmentors/test_cct.py`.
"""

import numpy as np
import pytest
import torch
import world
from world import MAX_ITERS

pytestmark = pytest.mark.slow


class Recorder(world.Recorder):
    """Keeps λ_u and whether an unlabelled image has a mask, too."""

    def __init__(self, kill_after=None):
        super().__init__(kill_after)
        self.weights = []
        self.has_ground_truth = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.weights.append(runner.model.auxiliary_head.loss_consistency.loss_weight)
        self.has_ground_truth.extend(
            'gt_sem_seg' in sample for sample in data_batch['data_samples']['unlabeled']
        )


@pytest.fixture(scope='module')
def data_root(tmp_path_factory):
    """Images for all, masks for the labelled ones alone."""
    root = tmp_path_factory.mktemp('set')
    world.write_images(root, num_labeled=3)
    return root


def train(root, work_dir, num_workers=0, seed=0, resume=False, kill_after=None):
    """Runs a training and gives its recorder and its final weights."""
    config = world.cct_config(root)
    config.train_dataloader.num_workers = num_workers
    config.default_hooks.checkpoint.interval = 3
    config.randomness.seed = seed
    return world.run(config, work_dir, Recorder(kill_after), resume=resume)


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
    assert len(list((data_root / 'masks').iterdir())) == 3
    assert not any(recorder.has_ground_truth)
    assert list(recorder.logged) == list(range(MAX_ITERS))
    assert all(np.isfinite(list(logged.values())).all() for logged in recorder.logged.values())
    assert all(weight.isfinite().all() for weight in weights.values())
    for key in ('loss', 'decode.loss_ce', 'aux.consistency'):
        # they differ between iterations, or the comparisons below would say nothing
        assert len({logged[key] for logged in recorder.logged.values()}) == MAX_ITERS
    length = 0.8 * MAX_ITERS
    assert recorder.weights == pytest.approx(  # of the ramp
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
