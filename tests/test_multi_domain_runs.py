"""Whole runs on two domains: alternation, resume, evaluation, two processes."""

import multiprocessing
import os

import pytest
import tiny
import torch
import torch.distributed
import world
from mmengine.dist import get_rank
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS, init_default_scope
from mmengine.runner import Runner
from mmseg.registry import DATASETS, MODELS
from ranks import without_cuda

pytestmark = pytest.mark.slow

MAX_ITERS = 6
SIZES = dict(first=(32, 32), second=(24, 40))
OPTIMIZER = dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=0.1)


class Recorder(world.Recorder):
    """Keeps each iteration's domain and the last metrics, too."""

    def __init__(self, kill_after=None):
        super().__init__(kill_after)
        self.domains = {}
        self.metrics = None

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.domains[runner.iter] = {
            sample.domain for branch in data_batch['data_samples'].values() for sample in branch
        }
        super().after_train_iter(runner, batch_idx, data_batch, outputs)

    def after_val_epoch(self, runner, metrics=None):
        self.metrics = metrics


def scenes(domain, start, count, with_masks=True, resized=True):
    height, width = SIZES[domain]
    pipeline = [
        dict(type='DrawShapesScene', with_seg_map=with_masks),
        *[dict(type='Resize', scale=(width, height))] * resized,
        dict(type='PackSegInputs'),
    ]
    return dict(type='ShapesDataset', start=start, count=count, pipeline=pipeline)


def model_config():
    """All seven classes of the shapes in both domains."""
    config = tiny.multi_domain_config(
        discriminator=dict(type='DomainDiscriminator', in_channels=6, channels=(8,))
    )
    for domain in config['domains'].values():
        for head in ('decode_head', 'auxiliary_head'):
            domain[head] = dict(num_classes=7)
    return config


@pytest.fixture(scope='module')
def train_set():
    init_default_scope('mmseg')
    return DATASETS.build(
        dict(
            type='MultiDomainDataset',
            domains={
                name: dict(
                    type='SemiSegDataset',
                    labeled=scenes(name, 10 * k, 3),
                    unlabeled=scenes(name, 10 * k + 5, 4, False),
                )
                for k, name in enumerate(SIZES)
            },
        )
    )


@pytest.fixture(scope='module')
def val_set():
    return DATASETS.build(
        dict(
            type='MultiDomainConcatDataset',
            domains={
                name: scenes(name, 100 + 10 * k, k + 1, resized=False)
                for k, name in enumerate(SIZES)
            },
        )
    )


def loader_config(dataset, **kwargs):
    return dict(
        dict(
            batch_size=2,
            num_workers=0,
            dataset=dataset,
            sampler=dict(type='MultiDomainSampler', batch_size=2),
        ),
        **kwargs,
    )


def train(train_set, work_dir, num_workers=0, resume=False, kill_after=None, **kwargs):
    recorder = Recorder(kill_after)
    runner = Runner(
        model=model_config(),
        work_dir=str(work_dir),
        train_dataloader=loader_config(train_set, num_workers=num_workers),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=MAX_ITERS, val_interval=MAX_ITERS),
        optim_wrapper=dict(optimizer=OPTIMIZER),
        default_hooks=dict(
            logger=None,
            checkpoint=dict(
                type='CheckpointHook',
                by_epoch=False,
                interval=3,
                save_best='mIoU_avg' if kwargs else None,
            ),
        ),
        custom_hooks=[
            dict(type='IterationSeedHook'),
            dict(
                type='RampUpHook',
                end=30.0,
                fraction=0.8,
                attribute='domains.*.auxiliary_head.loss_consistency.loss_weight',
            ),
            recorder,
        ],
        randomness=dict(seed=0),
        resume=resume,
        default_scope='mmseg',
        log_processor=dict(by_epoch=False),
        log_level='ERROR',
        experiment_name=work_dir.name,
        **kwargs,
    )
    return world.train(runner, recorder)


@pytest.fixture(scope='module')
def uninterrupted(train_set, tmp_path_factory):
    return train(train_set, tmp_path_factory.mktemp('uninterrupted'))


def test_domains_alternate_by_iteration(uninterrupted):
    domains = uninterrupted[0].domains
    assert domains == {k: {('first', 'second')[k % 2]} for k in range(MAX_ITERS)}
    losses = {
        logged[f'{("first", "second")[k % 2]}.aux.consistency']
        for k, logged in uninterrupted[0].logged.items()
    }
    assert len(losses) == MAX_ITERS  # or comparing two runs would say nothing


@pytest.mark.parametrize(('num_workers', 'kill_after'), [(0, 5), (2, 4)])
def test_a_resumed_run_keeps_the_alternation(
    uninterrupted, train_set, tmp_path, num_workers, kill_after
):
    killed, _ = train(train_set, tmp_path, num_workers, kill_after=kill_after)
    resumed, weights = train(train_set, tmp_path, num_workers, resume=True)
    assert list(resumed.logged) == [3, 4, 5]  # from the last checkpoint, amid a cycle
    expected = uninterrupted[0]
    assert {**killed.domains, **resumed.domains} == expected.domains
    for iteration, logged in {**killed.logged, **resumed.logged}.items():
        assert logged == pytest.approx(expected.logged[iteration], rel=1e-6)
    for name, weight in uninterrupted[1].items():
        torch.testing.assert_close(weights[name], weight, rtol=1e-6, atol=1e-6)


def test_one_validation_gives_every_domain_and_the_average(train_set, val_set, tmp_path):
    recorder, _ = train(
        train_set,
        tmp_path,
        val_dataloader=dict(
            batch_size=1,
            num_workers=0,
            dataset=val_set,
            sampler=dict(type='DefaultSampler', shuffle=False),
        ),
        val_cfg=dict(type='ValLoop'),
        val_evaluator=dict(type='MultiDomainIoUMetric', iou_metrics=['mIoU']),
    )
    metrics = recorder.metrics
    mean = (metrics['first/mIoU'] + metrics['second/mIoU']) / 2
    assert metrics['mIoU_avg'] == pytest.approx(mean, abs=0.01)
    assert (tmp_path / f'best_mIoU_avg_iter_{MAX_ITERS}.pth').is_file()
    checkpoint = torch.load(tmp_path / f'iter_{MAX_ITERS}.pth', weights_only=False)
    assert list(checkpoint['meta']['dataset_meta']['domains']) == ['first', 'second']


def train_a_rank(rank, folder, dataset):
    """Four iterations under DDP; writes the domains, what moved and the weights."""
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{folder}/rendezvous', rank=rank, world_size=2
    )
    assert get_rank() == rank
    torch.manual_seed(0)
    model = MODELS.build(model_config())
    wrapped = MODEL_WRAPPERS.build(
        dict(
            type='MMDistributedDataParallel',
            module=model,
            device_ids=None,
            broadcast_buffers=False,
            find_unused_parameters=True,
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=0.1)
    wrapper = OptimWrapper(optimizer)
    record = []
    for step, batch in zip(range(4), Runner.build_dataloader(loader_config(dataset), seed=0)):
        torch.manual_seed(10 * step + rank)
        names = {s.domain for branch in batch['data_samples'].values() for s in branch}
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        wrapped.train_step(batch, wrapper)
        moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
        images = torch.stack(batch['inputs']['labeled'])
        record.append((names, moved, images))
    torch.save((record, dict(model.named_parameters())), f'{folder}/rank{rank}.pth')
    torch.distributed.destroy_process_group()


@without_cuda
def test_two_ranks_stay_on_one_domain_and_end_with_equal_weights(train_set, tmp_path):
    context = multiprocessing.get_context('fork')  # no second import of torch and MMSeg
    workers = [
        context.Process(target=train_a_rank, args=(rank, str(tmp_path), train_set))
        for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    (record, weights), (other_record, other_weights) = (
        torch.load(os.path.join(tmp_path, f'rank{rank}.pth'), weights_only=False)
        for rank in range(2)
    )
    for step, (mine, other) in enumerate(zip(record, other_record)):
        domain = ('first', 'second')[step % 2]
        assert mine[0] == other[0] == {domain}
        assert (
            mine[1]
            == other[1]
            == {
                name
                for name in weights
                if not name.startswith('domains.') or name.startswith(f'domains.{domain}.')
            }
        )
        assert not torch.equal(mine[2], other[2])
    for name, weight in weights.items():
        assert torch.equal(weight, other_weights[name]), name
