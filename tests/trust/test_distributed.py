"""Two gloo ranks on the CPU against one process with the joined batch.

The joined batch has the same images: rank r of 2 takes the positions r, r + 2, ... of the stream.
For one and the same loss the model must be free of what looks at a batch: no BatchNorm (GN here; on
a CPU torch has no SyncBN) and perturbations that draw nothing (Con-Msk, Obj-Msk).
"""

import json
import signal

import pytest
import tiny
import torch
from ranks import end_as_torchrun, start_tool, without_cuda

pytestmark = without_cuda
ITERATIONS = 2
LAST = f'iter_{ITERATIONS}.pth'


@pytest.fixture
def pair(slow, cct):
    """A config whose loss is a plain mean over images, recorded on each rank."""
    config = cct.config
    for part in (config.model.backbone, config.model.neck):
        part.norm_cfg = dict(type='GN', num_groups=2)
    config.model.auxiliary_head.perturbations = dict(
        context=dict(type='ContextMasking', num_decoders=1),
        objects=dict(type='ObjectMasking', num_decoders=1),
    )
    config.custom_imports.imports.append('rank_hooks')
    config.custom_hooks.append(dict(type='RecorderHook'))
    config.train_cfg.update(max_iters=ITERATIONS, val_interval=100)
    config.param_scheduler[0].end = 2 * ITERATIONS  # at its end the rate is 0
    cct.write()
    return cct


def two_ranks(pair, work_dir, *options):
    """Trains in two processes that share nothing but a port; gives codes, outputs and errors."""
    pair.write()
    return end_as_torchrun(
        start_tool(pair.folder, 'train', pair.file, '--work-dir', work_dir, *options)
    )


def records(work_dir, rank=0):
    return [json.loads(line) for line in (work_dir / f'rank{rank}.jsonl').read_text().splitlines()]


def assert_equal_ranks(work_dir, ranks):
    """Both ended well, with one network after each iteration, statistics included."""
    assert [code for code, *_ in ranks] == [0, 0], ranks[0][2]
    first, second = ([line['weights'] for line in records(work_dir, rank)] for rank in range(2))
    assert first == second and len(first) == len({*first}) > 0


def weights_of(pair, *work_dirs):
    """The names, and the values in each run, of the weights of student and teacher at the end."""
    contents = [pair.load(pair.folder / name / LAST) for name in work_dirs]
    for network in ('state_dict', 'teacher_state_dict'):
        for name in contents[0][network]:
            yield network, name, *(content[network][name] for content in contents)


def test_two_ranks_with_batch_norm_resume_to_the_same_weights(pair):
    """Statistics are those of both ranks' images, and DDP takes the layout of the hook."""
    tiny.widen(pair.config.model)
    for part in (pair.config.model.backbone, pair.config.model.neck):
        part.norm_cfg = dict(type='SyncBN')
    pair.config.default_hooks.memory_format = dict(type='ChannelsLastHook')
    pair.config.custom_hooks.append(dict(type='TeacherHook', decay=0.5))
    pair.config.default_hooks.checkpoint.update(interval=1, max_keep_ckpts=-1)
    assert_equal_ranks(pair.folder / 'whole', two_ranks(pair, 'whole'))
    resumed = two_ranks(pair, 'resumed', '--resume', pair.folder / 'whole/iter_1.pth')
    assert_equal_ranks(pair.folder / 'resumed', resumed)
    for *place, whole, again in weights_of(pair, 'whole', 'resumed'):
        assert torch.equal(whole, again), place


def test_two_ranks_train_as_one_process_with_the_joined_batch(pair):
    pair.config.custom_hooks.append(dict(type='TeacherHook', decay=0.5))
    pair.config.train_cfg.val_interval = ITERATIONS
    # No padding: each rank takes the mean over its own real pixels, as every loss of MMSeg does.
    for branch in ('labeled', 'unlabeled'):
        for transform in pair.config.train_dataloader.dataset[branch].pipeline:
            if transform.type == 'RandomResize':
                transform.ratio_range = (1.0, 1.5)
    pair.write()
    pair.train('one', {'train_dataloader.batch_size': 4})
    assert_equal_ranks(pair.folder / 'two', two_ranks(pair, 'two'))

    one, *ranks = (
        records(pair.folder / name, n) for name, n in (('one', 0), ('two', 0), ('two', 1))
    )
    for joined, first, second in zip(one, *ranks, strict=True):
        assert first['draw'] != second['draw']
        assert sorted(first['files'] + second['files']) == sorted(joined['files'])
        for key, value in joined['outputs'].items():
            mean = (first['outputs'][key] + second['outputs'][key]) / 2
            assert mean == pytest.approx(value, rel=1e-5, abs=1e-6), key
    for *_, alone, joined in weights_of(pair, 'one', 'two'):
        torch.testing.assert_close(joined, alone, rtol=1e-4, atol=1e-6)
    # 3 validation images: one of them is seen by both ranks and must count once
    scores = []
    for name in ('one', 'two'):
        (path,) = (pair.folder / name).glob('*/vis_data/scalars.json')
        logged = map(json.loads, path.read_text().splitlines())
        scores += [line['mIoU'] for line in logged if 'mIoU' in line]
    assert scores == [pytest.approx(scores[0], abs=1e-3)] * 2 and scores[0] > 0


def test_a_loss_that_is_not_finite_on_one_rank_stops_both(pair):
    """One message, which names the rank and its files, and no rank that waits for ever."""
    pair.config.custom_hooks.append(dict(type='PoisonHook', iteration=1, rank=1))
    ranks = two_ranks(pair, 'two')
    assert [code for code, *_ in ranks] == [2, -signal.SIGTERM]
    said = ''.join(error for *_, error in ranks).splitlines()
    (line,) = [line for line in said if line.startswith('error: ')]
    assert line.startswith('error: iteration 1 (rank 1): aux.loss is nan on ')
    assert (pair.folder / 'two/nonfinite_iter_1.pth').is_file()


@pytest.mark.parametrize(
    'options',
    [
        ['activation_checkpointing=[backbone]'],
        ['optim_wrapper.accumulative_counts=2', 'optim_wrapper.type=BFloat16OptimWrapper'],
    ],
)
def test_options_that_touch_the_backward_pass_work_on_two_ranks(pair, options):
    pair.config.custom_hooks.append(dict(type='EMAHook'))
    assert_equal_ranks(pair.folder / 'two', two_ranks(pair, 'two', '--cfg-options', *options))
