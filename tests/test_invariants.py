"""DESIGN's invariants on whole runs: data on disk, loader, hooks, model, optimiser, checkpoints.

That no unsupervised loss reaches the main decoder, and that a key contains "loss" only if it is
optimised, is in `models/segmentors/test_cct.py`.
"""

import numpy as np
import pytest
import torch
import world
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS
from mmengine.runner import Runner
from mmseg.registry import MODELS
from ranks import on_two_ranks, without_cuda
from world import MAX_ITERS

pytestmark = pytest.mark.slow

DOMAINS = ('first', 'second')


class Recorder(world.Recorder):
    """Keeps λ_u, whether an unlabelled image has a mask, each domain and the last metrics, too."""

    def __init__(self, kill_after=None):
        super().__init__(kill_after)
        self.weights, self.has_ground_truth, self.domains, self.metrics = [], [], {}, None

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        samples = data_batch['data_samples']['unlabeled']
        self.has_ground_truth.extend('gt_sem_seg' in sample for sample in samples)
        if 'domain' in samples[0]:
            self.domains[runner.iter] = domains_of(data_batch)
        else:
            self.weights.append(runner.model.auxiliary_head.loss_consistency.loss_weight)

    def after_val_epoch(self, runner, metrics=None):
        self.metrics = metrics


def domains_of(batch):
    return {sample.domain for branch in batch['data_samples'].values() for sample in branch}


@pytest.fixture(scope='module')
def data_root(tmp_path_factory):
    """Images for all, masks for the labelled ones alone."""
    root = tmp_path_factory.mktemp('set')
    world.write_images(root, num_labeled=3)
    return root


def domains_config(root):
    discriminator = dict(type='DomainDiscriminator', in_channels=6, channels=(8,))
    return world.multi_domain_config(root, discriminator=discriminator)


def train(
    root, work_dir, num_workers=0, seed=0, kill_after=None, build=world.cct_config, **changes
):
    """Runs a training and gives its recorder and its final weights."""
    config = build(root)
    config.train_dataloader.num_workers = num_workers
    config.default_hooks.checkpoint.interval = 3
    config.randomness.seed = seed
    return world.run(config, work_dir, Recorder(kill_after), **changes)


@pytest.fixture(scope='module')
def uninterrupted(data_root, tmp_path_factory):
    return train(data_root, tmp_path_factory.mktemp('uninterrupted'))


@pytest.fixture(scope='module')
def of_domains(data_root, tmp_path_factory):
    validate = {
        'train_cfg.val_interval': MAX_ITERS, 'default_hooks.checkpoint.save_best': 'mIoU_avg'
    }  # fmt: skip
    work_dir = tmp_path_factory.mktemp('of_domains')
    return *train(data_root, work_dir, build=domains_config, **validate), work_dir


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


def test_the_same_seed_gives_the_same_run(uninterrupted, data_root, tmp_path):
    assert_same_run(train(data_root, tmp_path, num_workers=2), uninterrupted)


def test_another_seed_gives_another_run(uninterrupted, data_root, tmp_path):
    other = train(data_root, tmp_path, seed=1, kill_after=1)
    assert other[0].logged[0]['loss'] != uninterrupted[0].logged[0]['loss']


def test_a_killed_and_resumed_run_of_domains_is_the_uninterrupted_one(
    of_domains, data_root, tmp_path
):
    """That of one data set, which a signal kills, is in `trust/test_resume.py`."""
    killed, _ = train(data_root, tmp_path, kill_after=5, build=domains_config)
    assert list(killed.logged) == list(range(5))
    resumed, weights = train(data_root, tmp_path, resume=True, build=domains_config)
    # from the last checkpoint on, amid a cycle of domains
    assert list(resumed.logged) == list(range(3, MAX_ITERS))
    assert {**killed.domains, **resumed.domains} == of_domains[0].domains
    resumed.logged = {**killed.logged, **resumed.logged}
    assert_same_run((resumed, weights), of_domains, tolerance=1e-6)


def test_domains_alternate_and_one_validation_gives_each_and_the_average(of_domains):
    recorder, _, work_dir = of_domains
    assert recorder.domains == {k: {DOMAINS[k % 2]} for k in range(MAX_ITERS)}
    losses = {logged[f'{DOMAINS[k % 2]}.aux.consistency'] for k, logged in recorder.logged.items()}
    assert len(losses) == MAX_ITERS  # or comparing two runs would say nothing
    metrics = recorder.metrics
    mean = (metrics['first/mIoU'] + metrics['second/mIoU']) / 2
    assert metrics['mIoU_avg'] == pytest.approx(mean, abs=0.01)
    assert (work_dir / f'best_mIoU_avg_iter_{MAX_ITERS}.pth').is_file()
    checkpoint = torch.load(work_dir / f'iter_{MAX_ITERS}.pth', weights_only=False)
    assert tuple(checkpoint['meta']['dataset_meta']['domains']) == DOMAINS


@without_cuda
def test_two_ranks_stay_on_one_domain_and_end_with_equal_weights(data_root, tmp_path):
    config = domains_config(data_root)

    def train_a_rank(rank):
        """Four iterations under DDP; gives what each saw and moved, and the weights."""
        torch.manual_seed(0)
        model = MODELS.build(config.model)
        settings = dict(device_ids=None, broadcast_buffers=False, find_unused_parameters=True)
        wrapped = MODEL_WRAPPERS.build(
            dict(type='MMDistributedDataParallel', module=model, **settings)
        )
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=0.1)
        wrapper = OptimWrapper(optimizer)
        record = []
        batches = Runner.build_dataloader(config.train_dataloader, seed=0)
        for step, batch in zip(range(4), batches):
            torch.manual_seed(10 * step + rank)
            before = {name: p.detach().clone() for name, p in model.named_parameters()}
            wrapped.train_step(batch, wrapper)
            moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
            record.append((domains_of(batch), moved, batch['inputs']['labeled'][0]))
        return record, dict(model.named_parameters())

    (record, weights), (other_record, other_weights) = on_two_ranks(train_a_rank, tmp_path)
    for step, (mine, other) in enumerate(zip(record, other_record, strict=True)):
        domain = DOMAINS[step % 2]
        others = f'domains.{DOMAINS[1 - step % 2]}.'
        expected = {name for name in weights if not name.startswith(others)}
        assert mine[:2] == other[:2] == ({domain}, expected)
        assert not torch.equal(mine[2], other[2])
    for name, weight in weights.items():
        assert torch.equal(weight, other_weights[name]), name
