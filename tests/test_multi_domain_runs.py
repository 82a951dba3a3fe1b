"""Whole runs on two domains: alternation, resume, evaluation, two processes."""

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
    """Keeps each iteration's domain and the last metrics, too."""

    def __init__(self, kill_after=None):
        super().__init__(kill_after)
        self.domains = {}
        self.metrics = None

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.domains[runner.iter] = domains_of(data_batch)
        super().after_train_iter(runner, batch_idx, data_batch, outputs)

    def after_val_epoch(self, runner, metrics=None):
        self.metrics = metrics


def domains_of(batch):
    return {sample.domain for branch in batch['data_samples'].values() for sample in branch}


@pytest.fixture(scope='module')
def data_root(tmp_path_factory):
    root = tmp_path_factory.mktemp('set')
    world.write_images(root)
    return root


def config_of(root):
    discriminator = dict(type='DomainDiscriminator', in_channels=6, channels=(8,))
    return world.multi_domain_config(root, discriminator=discriminator)


def train(root, work_dir, num_workers=0, kill_after=None, **changes):
    config = config_of(root)
    config.train_dataloader.num_workers = num_workers
    config.default_hooks.checkpoint.update(interval=3, save_best='mIoU_avg')
    return world.run(config, work_dir, Recorder(kill_after), **changes)


@pytest.fixture(scope='module')
def uninterrupted(data_root, tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('uninterrupted')
    return *train(data_root, work_dir, **{'train_cfg.val_interval': MAX_ITERS}), work_dir


def test_domains_alternate_by_iteration(uninterrupted):
    domains = uninterrupted[0].domains
    assert domains == {k: {DOMAINS[k % 2]} for k in range(MAX_ITERS)}
    losses = {
        logged[f'{DOMAINS[k % 2]}.aux.consistency'] for k, logged in uninterrupted[0].logged.items()
    }
    assert len(losses) == MAX_ITERS  # or comparing two runs would say nothing


@pytest.mark.parametrize(('num_workers', 'kill_after'), [(0, 5), (2, 4)])
def test_a_resumed_run_keeps_the_alternation(
    uninterrupted, data_root, tmp_path, num_workers, kill_after
):
    killed, _ = train(data_root, tmp_path, num_workers, kill_after)
    resumed, weights = train(data_root, tmp_path, num_workers, resume=True)
    assert list(resumed.logged) == [3, 4, 5]  # from the last checkpoint, amid a cycle
    expected = uninterrupted[0]
    assert {**killed.domains, **resumed.domains} == expected.domains
    for iteration, logged in {**killed.logged, **resumed.logged}.items():
        assert logged == pytest.approx(expected.logged[iteration], rel=1e-6)
    for name, weight in uninterrupted[1].items():
        torch.testing.assert_close(weights[name], weight, rtol=1e-6, atol=1e-6)


def test_one_validation_gives_every_domain_and_the_average(uninterrupted):
    recorder, _, work_dir = uninterrupted
    metrics = recorder.metrics
    mean = (metrics['first/mIoU'] + metrics['second/mIoU']) / 2
    assert metrics['mIoU_avg'] == pytest.approx(mean, abs=0.01)
    assert (work_dir / f'best_mIoU_avg_iter_{MAX_ITERS}.pth').is_file()
    checkpoint = torch.load(work_dir / f'iter_{MAX_ITERS}.pth', weights_only=False)
    assert tuple(checkpoint['meta']['dataset_meta']['domains']) == DOMAINS


@without_cuda
def test_two_ranks_stay_on_one_domain_and_end_with_equal_weights(data_root, tmp_path):
    config = config_of(data_root)

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
