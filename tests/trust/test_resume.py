"""Kills, damaged files and moved ends: a resumed training is the one never interrupted."""

import itertools
import logging
import multiprocessing
import os
import signal
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny
import torch
import world
from mmengine.logging import MessageHub
from mmengine.runner import ValLoop
from mmseg.evaluation import IoUMetric
from ranks import without_cuda
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from mmseg_cct.engine import checkpoints
from mmseg_cct.engine.checkpoints import find_resumable, newest_checkpoint, read_checkpoint
from mmseg_cct.engine.hooks import DurableCheckpointHook
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import locked_folder

MAX_ITERS = 6  # the config's
LOSSES = ('loss', 'decode.loss_ce', 'aux.loss', 'aux.consistency', 'lr')


@pytest.fixture
def messages(monkeypatch):
    lines = []
    monkeypatch.setattr('mmseg_cct.utils.log.print_log', lambda line, **kwargs: lines.append(line))
    return lines


def assert_same_curve(logged, expected):
    assert logged.keys() == expected.keys()
    for iteration, lines in logged.items():
        for line in lines:
            for key in LOSSES:
                assert line[key] == pytest.approx(expected[iteration][0][key], rel=1e-5), iteration


def assert_same_weights(one, other):
    for name, weight in other.items():
        torch.testing.assert_close(one[name], weight, rtol=1e-5, atol=1e-6)


@without_cuda
def test_killed_and_resumed_is_the_uninterrupted_run(cct, trained):
    work, put = cct.folder / 'work', checkpoints.AtomicLocalBackend.put

    def put_half(*args):
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        put(*args)

    def train(in_a_write):
        if in_a_write:
            checkpoints.AtomicLocalBackend.put = put_half  # this process has no other use for it
        cct.train(resume='auto', options={'train_cfg.max_iters': MAX_ITERS})

    context = multiprocessing.get_context('fork')  # quick: everything is imported
    for after in (1, None, 4):  # logged iterations before the kill; None: in the first write
        process = context.Process(target=train, args=(after is None,))
        process.start()
        if after:
            while process.is_alive() and len(cct.scalars(work)) < after:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert after or list(work.glob('.*.part'))
        for path in work.glob('iter_*.pth'):
            read_checkpoint(str(path))
    cct.train(resume='auto')
    assert_same_curve(cct.scalars(work), trained.logged)
    last = work / f'iter_{MAX_ITERS}.pth'
    assert_same_weights(cct.load(last)['state_dict'], cct.load(trained.checkpoint)['state_dict'])


class TestFindResumable:
    @pytest.fixture
    def work_dir(self, tmp_path):
        for number in (2, 4, 10):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / f'iter_{number}.pth')
        (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_10.pth'))
        return tmp_path

    def test_the_named_one(self, work_dir, messages):
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_10.pth')
        assert messages == []

    def test_a_truncated_one_gives_way_to_the_one_before(self, work_dir, messages):
        path = work_dir / 'iter_10.pth'
        path.write_bytes(path.read_bytes()[:-30])
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')
        (message,) = messages
        assert message.startswith(f'{path}: not a whole checkpoint, {path.stat().st_size} bytes')
        assert message.endswith('trying the checkpoint before it')

    def test_a_changed_byte_is_noticed(self, work_dir, messages):
        path = work_dir / 'iter_10.pth'
        data = bytearray(path.read_bytes())
        data[data.index(bytes(36)) + 5] ^= 1  # in the nine zeros
        path.write_bytes(data)
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')
        assert 'does not have its checksum' in messages[0]

    def test_several_damaged_ones(self, work_dir, messages):
        (work_dir / 'iter_10.pth').write_bytes(b'')
        (work_dir / 'iter_4.pth').write_text('text')
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_2.pth')
        assert len(messages) == 2

    def test_an_empty_archive_gives_way_too(self, work_dir, messages):
        zipfile.ZipFile(work_dir / 'iter_10.pth', 'w').close()
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')

    def test_names_of_the_hook_count_and_a_best_one_only_where_there_is_no_other(self, tmp_path):
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth', 'best_x_iter_50.pth', 'y-12345678.pth'):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / name)
        assert find_resumable(str(tmp_path), 'ck_{}.pth') == str(tmp_path / 'ck_20.pth')
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth'):
            (tmp_path / name).unlink()
        assert newest_checkpoint(str(tmp_path)) == str(tmp_path / 'best_x_iter_50.pth')
        assert find_resumable(str(tmp_path)) is None

    def test_none_left(self, work_dir, messages):
        for number in (2, 4, 10):
            (work_dir / f'iter_{number}.pth').write_bytes(b'')
        assert find_resumable(str(work_dir)) is None
        assert find_resumable(str(work_dir / 'nowhere')) is None

    @pytest.mark.parametrize('content', [b'', b'\xff\0', None])
    def test_a_list_that_a_kill_has_emptied(self, work_dir, messages, content):
        (work_dir / 'last_checkpoint').unlink()
        if content is not None:
            (work_dir / 'last_checkpoint').write_bytes(content)
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_10.pth')

    def test_higher_numbers_of_an_earlier_training_do_not_count(self, work_dir, messages):
        (work_dir / 'last_checkpoint').write_text(str(work_dir / 'iter_4.pth'))
        (work_dir / 'iter_4.pth').write_bytes(b'')
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_2.pth')

    def test_a_moved_work_dir(self, work_dir, tmp_path_factory):
        moved = tmp_path_factory.mktemp('moved') / 'work'
        work_dir.rename(moved)
        assert find_resumable(str(moved)) == str(moved / 'iter_10.pth')


def test_the_old_checkpoint_goes_only_after_the_new_one_is_there(cct, monkeypatch):
    real, present = checkpoints.AtomicLocalBackend.put, []

    def put(self, data, path):
        present.append(sorted(p.name for p in (cct.folder / 'work').glob('*iter_*.pth')))
        real(self, data, path)

    monkeypatch.setattr(checkpoints.AtomicLocalBackend, 'put', put)
    cct.train(
        options={
            'default_hooks.checkpoint.max_keep_ckpts': 1,
            'default_hooks.checkpoint.interval': 1,
            'train_cfg.max_iters': 3,
        }
    )
    assert present == [[], ['iter_1.pth'], ['iter_2.pth']]
    assert [p.name for p in (cct.folder / 'work').glob('iter_*.pth')] == ['iter_3.pth']


def test_a_checkpoint_that_is_written_again_is_kept(tmp_path):
    """After a kill between two steps of the optimizer, a training goes back and repeats some."""
    runner = SimpleNamespace(
        work_dir=str(tmp_path),
        message_hub=MessageHub.get_instance(world.experiment()),
        logger=logging.getLogger(__name__),
        max_iters=100,
        epoch=0,
        save_checkpoint=lambda folder, name, *_, **__: torch.save({}, Path(folder, name)),
    )
    for iterations in (range(7), range(4, 7)):  # four make a step
        hook = DurableCheckpointHook(interval=1, by_epoch=False, max_keep_ckpts=3)
        hook.before_train(runner)
        for runner.iter in iterations:
            hook.after_train_iter(runner, runner.iter)
            assert (tmp_path / f'iter_{runner.iter + 1}.pth').exists()
    assert len(list(tmp_path.glob('iter_*.pth'))) == 3


def test_a_schedule_with_groups_and_warm_up_follows_its_new_end(cct):
    cct.config.optim_wrapper.paramwise_cfg = dict(custom_keys={'backbone': dict(lr_mult=0.1)})
    cct.config.param_scheduler = [
        dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=2),
        dict(type='PolyLR', power=0.9, by_epoch=False, begin=2, end=MAX_ITERS),
    ]
    cct.write()
    cct.train('longer', options={'train_cfg.max_iters': 9})
    cct.train(options={'train_cfg.max_iters': 4})
    cct.train(options={'train_cfg.max_iters': 9}, resume='auto')
    longer, resumed = cct.scalars(cct.folder / 'longer'), cct.scalars(cct.folder / 'work')
    for iteration in range(5, 10):
        assert resumed[iteration][-1]['lr'] == pytest.approx(longer[iteration][0]['lr'])
    last = [
        cct.load(cct.folder / name / 'iter_9.pth')['optimizer']['param_groups']
        for name in ('longer', 'work')
    ]
    assert [g['lr'] for g in last[1]] == pytest.approx([g['lr'] for g in last[0]])


def test_a_validation_that_was_cut_short_is_run_again(cct, monkeypatch):
    options = {'train_cfg.val_interval': 2, 'default_hooks.checkpoint.save_best': 'mIoU'}
    run, validated = ValLoop.run, {}  # mIoU by iteration
    monkeypatch.setattr(
        ValLoop, 'run', lambda self: validated.update({self.runner.iter: run(self)['mIoU']})
    )
    cct.train('whole', options=options)
    expected = dict(validated)
    assert list(expected) == [2, 4, 6]
    validated.clear()

    def kill(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ValLoop, 'run', kill)
        cct.train(options=options)
    assert not list((cct.folder / 'work').glob('best_*'))
    cct.train(options=options, resume='auto')
    assert validated == pytest.approx(expected)
    best = [
        sorted(p.name for p in (cct.folder / name).glob('best_*')) for name in ('whole', 'work')
    ]
    assert len(best[0]) == 1 and best[1] == best[0]


def test_without_an_interval_of_its_own_a_checkpoint_is_written_where_it_validates(cct):
    del cct.config.default_hooks.checkpoint['interval']
    cct.write()
    cct.train(options={'train_cfg.val_interval': 3})
    names = sorted(path.name for path in (cct.folder / 'work').glob('iter_*.pth'))
    assert names == ['iter_3.pth', 'iter_6.pth']


class TestBestCheckpoint:
    """A resumed training whose validations score ever higher."""

    OPTIONS = {'train_cfg.val_interval': 2, 'default_hooks.checkpoint.save_best': 'mIoU'}

    @pytest.fixture(autouse=True)
    def rising_scores(self, monkeypatch):
        scores = itertools.count(1.0)
        compute = IoUMetric.compute_metrics
        monkeypatch.setattr(
            IoUMetric,
            'compute_metrics',
            lambda self, results: {**compute(self, results), 'mIoU': next(scores)},
        )

    def best(self, cct, name):
        return [p.name for p in (cct.folder / name).glob('best_*')]

    def test_that_of_the_first_training_stays(self, cct):
        cct.train('first', options={**self.OPTIONS, 'train_cfg.max_iters': 2})
        first = cct.folder / 'first/iter_2.pth'
        cct.train('second', options=self.OPTIONS, resume=str(first))
        assert self.best(cct, 'first') == ['best_mIoU_iter_2.pth']
        assert self.best(cct, 'second') == ['best_mIoU_iter_6.pth']

    def test_that_of_a_repeated_validation_stays(self, cct):
        options = {**self.OPTIONS, 'train_cfg.max_iters': 2}
        for resume in (None, 'auto'):
            cct.train(options=options, resume=resume)
            assert self.best(cct, 'work') == ['best_mIoU_iter_2.pth']

    @pytest.mark.parametrize('hook', ['DurableCheckpointHook', 'CheckpointHook'])
    def test_no_other_file_is_removed(self, cct, hook):
        options = {**self.OPTIONS, 'default_hooks.checkpoint.type': hook}
        cct.train(options={**options, 'train_cfg.max_iters': 2})
        start = cct.folder / 'work/iter_2.pth'
        content = cct.load(start)
        elsewhere = cct.folder / 'elsewhere'
        elsewhere.mkdir()
        names = ['notes.txt', 'best_mIoU_iter_9.pth']
        for index, file in enumerate(elsewhere / name for name in names):
            for folder in (elsewhere, cct.folder / f'work{index}'):
                folder.mkdir(exist_ok=True)
                (folder / 'notes.txt').touch()
            file.touch()
            content['message_hub']['runtime_info']['best_ckpt'] = str(file)
            torch.save(content, start)
            cct.train(f'work{index}', options=options, resume=str(start))
            assert file.exists() and (cct.folder / f'work{index}/notes.txt').exists()
            assert self.best(cct, f'work{index}') == ['best_mIoU_iter_6.pth']


@pytest.fixture
def lines(monkeypatch):
    """What a resume logs."""
    lines = []
    for module in ('utils.log', 'engine.hooks.resume_hook'):
        monkeypatch.setattr(f'mmseg_cct.{module}.print_log', lambda line, **_: lines.append(line))
    return lines


def test_a_seed_that_mmengine_drew_is_kept(cct, lines):
    cct.config.pop('randomness')
    cct.write()
    cct.train('whole')
    cct.train('again', resume=str(cct.folder / 'whole/iter_2.pth'))
    assert not [line for line in lines if 'differs from the checkpoint' in line]
    whole, again = (cct.scalars(cct.folder / name) for name in ('whole', 'again'))
    assert_same_curve(again, {iteration: whole[iteration] for iteration in (3, 4, 5, 6)})


@pytest.mark.parametrize('by_config', [False, True])
def test_weights_alone_are_nothing_to_resume_from(cct, trained, by_config):
    content, file = trained.load(trained.checkpoint), str(cct.folder / 'weights.pth')
    torch.save({'state_dict': content['state_dict']}, file)
    how = dict(options=dict(resume=True, load_from=file)) if by_config else dict(resume=file)
    with pytest.raises(UserError, match=r'^--resume: .*weights.pth has no meta, optim'):
        cct.train(**how)


def test_a_checkpoint_of_another_model_is_refused(cct, trained):
    cct.config.model.auxiliary_head.perturbations.pop('FeatureDrop')
    cct.write()
    with pytest.raises(UserError, match=r'iter_6.pth: does not fit .*\(7, 3, 6\), expected \(6'):
        cct.train(resume=str(trained.checkpoint))


class TestNewSettings:
    """Options that change between a checkpoint and its resume take effect."""

    def resumed(self, cct, trained, name='work', **options):
        cct.train(name, resume=str(trained.folder / 'work/iter_4.pth'), options=options)
        return cct.load(cct.folder / name / 'iter_6.pth')

    def test_a_lower_learning_rate(self, cct):
        cct.config.optim_wrapper.paramwise_cfg = dict(custom_keys={'neck': dict(lr_mult=0.1)})
        cct.write()
        cct.train('work', options={'train_cfg.max_iters': 6})
        (cct.folder / 'work/last_checkpoint').write_text('iter_4.pth')
        cct.train(resume='auto', options={'optim_wrapper.optimizer.lr': 0.005})
        logged = cct.scalars(cct.folder / 'work')
        for iteration in (5, 6):
            before, after = (line['lr'] for line in logged[iteration])
            assert after == pytest.approx(0.1 * before)
        groups = cct.load(cct.folder / 'work/iter_6.pth')['optimizer']['param_groups']
        rates = {round(group['initial_lr'], 6) for group in groups}
        assert rates == {0.005, 0.0005}

    def test_momentum_and_weight_decay(self, cct, trained):
        content = self.resumed(
            cct,
            trained,
            **{
                'optim_wrapper.optimizer.momentum': 0.5,
                'optim_wrapper.optimizer.weight_decay': 0.1,
            },
        )
        (group,) = content['optimizer']['param_groups']
        assert (group['momentum'], group['weight_decay']) == (0.5, 0.1)
        same = trained.load(trained.checkpoint)['optimizer']['param_groups'][0]
        assert group['lr'] == pytest.approx(same['lr'])

    def test_another_power_of_the_schedule(self, cct, trained):
        content = self.resumed(cct, trained, **{'param_scheduler.0.power': 2.0})
        logged = cct.scalars(cct.folder / 'work')
        assert logged[6][0]['lr'] == pytest.approx(0.05 * (1 - 5 / 5) ** 2, abs=1e-9)
        assert logged[5][0]['lr'] == pytest.approx(0.05 * (1 - 4 / 5) ** 2)
        assert content['param_schedulers'][0]['power'] == 2.0

    def test_the_log_names_what_differs(self, cct, trained, lines):
        self.resumed(cct, trained, **{'optim_wrapper.optimizer.momentum': 0.5})
        (line,) = [line for line in lines if 'differs from the checkpoint' in line]
        assert ': optim_wrapper.optimizer.momentum 0.9 -> 0.5, test_dataloader.dataset.data' in line

    def test_nothing_differs_without_a_change(self, cct, lines):
        cct.train(options={'train_cfg.max_iters': 6})
        cct.train(resume=str(cct.folder / 'work/iter_4.pth'))
        assert not [line for line in lines if 'differs' in line or 'follow' in line]

    def test_what_cannot_be_resumed_is_told(self, cct, trained, lines):
        cct.config.custom_hooks[0] = dict(type='EarlyStoppingHook', monitor='mIoU')
        cct.write()
        self.resumed(cct, trained)
        for hook in ('no IterationSeedHook', 'EarlyStoppingHook counts its patience anew'):
            assert [line for line in lines if hook in line]


def test_accumulated_gradients_are_accumulated_again(cct):
    options = {'optim_wrapper.accumulative_counts': 2, 'default_hooks.checkpoint.interval': 1}
    cct.train('whole', options=options)
    cct.train('again', resume=str(cct.folder / 'whole/iter_3.pth'), options=options)
    logged = [cct.scalars(cct.folder / name) for name in ('whole', 'again')]
    assert list(logged[1]) == [3, 4, 5, 6]
    states = [
        cct.load(cct.folder / name / 'iter_6.pth')['state_dict'] for name in ('whole', 'again')
    ]
    learned = [
        {key: value for key, value in state.items() if 'running_' not in key and 'num_b' not in key}
        for state in states
    ]
    assert_same_weights(*learned)


def test_accumulation_goes_on_with_the_next_epoch(cct):
    config = cct.config
    config.train_dataloader = dict(
        batch_size=2,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=True),
        dataset=dict(
            type='RepeatDataset', times=2, dataset=config.train_dataloader.dataset.labeled
        ),  # three batches
    )
    config.model.update(type='EncoderDecoder', auxiliary_head=None)
    config.train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=4, val_interval=100)
    config.param_scheduler = [dict(type='PolyLR', power=0.9, by_epoch=True, begin=0, end=4)]
    config.default_hooks.checkpoint = dict(type='DurableCheckpointHook', by_epoch=True, interval=1)
    config.custom_hooks = [dict(type='IterationSeedHook')]
    config.optim_wrapper.accumulative_counts = 2
    cct.write()
    cct.train('whole')
    cct.train('again', resume=str(cct.folder / 'whole/epoch_1.pth'))
    last = [cct.load(cct.folder / name / 'epoch_4.pth')['meta'] for name in ('whole', 'again')]
    assert [meta['iter'] for meta in last] == [12, 12]


@pytest.mark.parametrize(
    'change, message',
    [
        (dict(optimizer=dict(_delete_=True, type='AdamW', lr=1e-3)), 'state of another optimizer'),
        (dict(paramwise_cfg=dict(custom_keys={'neck': dict(lr_mult=0.1)})), 'another optimizer'),
    ],
)
def test_the_state_of_another_optimizer_is_refused(cct, trained, change, message):
    cct.config.merge_from_dict(dict(optim_wrapper=change))
    cct.write()
    with pytest.raises(UserError, match=message):
        cct.train(resume=str(trained.checkpoint))


def test_the_state_of_an_older_torch_is_taken(cct, trained, tmp_path):
    content = trained.load(trained.checkpoint)
    for group in content['optimizer']['param_groups']:
        del group['maximize']  # a flag of 1.12
    torch.save(content, tmp_path / 'older.pth')
    cct.train(resume=str(tmp_path / 'older.pth'))


class TestMomentsOfAnotherLayout:
    """A fused step would take one weight's moments for another's, and say nothing.

    Each step is held against the equation, with the gradients that it got: where a layout sums in
    another order, AdamW makes a step of any size of a gradient that is rounding alone, so whole
    trainings have no bound.
    """

    STEPS = MAX_ITERS - 3

    @pytest.fixture
    def steps(self, cct, monkeypatch):
        """A function that resumes in the other layout and gives before and after of each step."""
        tiny.widen(cct.config.model)
        cct.config.optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=0.01))
        cct.write()

        def train(name, channels_last, **kwargs):
            hook = dict(type='ChannelsLastHook', enabled=channels_last)
            cct.train(
                name, {'default_hooks.memory_format': hook, **kwargs.pop('options', {})}, **kwargs
            )

        def resume(before):
            train('whole', before, options={'train_cfg.max_iters': 3})
            checkpoint = cct.folder / 'whole' / 'iter_3.pth'
            seen = []
            handles = [
                register(lambda optimizer, *_: seen.append(snapshot(optimizer)))
                for register in (
                    register_optimizer_step_pre_hook,
                    register_optimizer_step_post_hook,
                )
            ]
            try:
                train('other', not before, resume=str(checkpoint))
            finally:
                for handle in handles:
                    handle.remove()
            return cct.load(checkpoint)['optimizer']['state'], list(zip(seen[::2], seen[1::2]))

        return resume

    @pytest.mark.parametrize('before', [True, False])
    def test_they_follow_their_weights(self, steps, before):
        saved, pairs = steps(before)
        assert len(pairs) == self.STEPS
        first = pairs[0][0]
        assert any(
            saved[i]['exp_avg'].stride() != weight['stride'] for i, weight in enumerate(first)
        )
        for index, weight in enumerate(first):
            for moment in ('exp_avg', 'exp_avg_sq'):
                assert torch.equal(weight[moment], saved[index][moment].double())
        for was, became in pairs:
            for weight, after in zip(was, became, strict=True):
                expected, bound = adamw_step(weight)
                assert ((after['weight'] - expected).abs() <= bound).all()


def snapshot(optimizer):
    """What AdamW's step of each weight is made of, in float64."""
    return [
        dict(
            weight=weight.detach().double(),
            gradient=weight.grad.double(),
            stride=weight.stride(),
            **{name: value.double() for name, value in optimizer.state[weight].items()},
            **{name: group[name] for name in ('lr', 'betas', 'eps', 'weight_decay')},
        )
        for group in optimizer.param_groups
        for weight in group['params']
    ]


def adamw_step(weight):
    """The weight after AdamW's step, and how far float32 may be from it.

    The step rounds 16 times: the decay 2, the average of gradients 4, that of squares 4 of which
    the root leaves half, the root 1, the correction 2, the sum with ε 1, the quotient 1, the rate
    2, the difference 1. Each time by 2^-24 of the largest value that is in it.
    """
    w, gradient, step = weight['weight'], weight['gradient'], weight['step'] + 1
    beta1, beta2 = weight['betas']
    mean = beta1 * weight['exp_avg'] + (1 - beta1) * gradient
    square = beta2 * weight['exp_avg_sq'] + (1 - beta2) * gradient**2
    scale = weight['lr'] / (1 - beta1**step) / ((square / (1 - beta2**step)).sqrt() + weight['eps'])
    expected = w * (1 - weight['lr'] * weight['weight_decay']) - scale * mean
    return expected, 16 * 2**-24 * (w.abs() + scale * (weight['exp_avg'].abs() + gradient.abs()))


@pytest.mark.parametrize('evaluate', ['student', 'teacher'])
def test_a_teacher_of_more_decoders_is_refused(cct, evaluate):
    cct.config.custom_hooks.append(dict(type='TeacherHook', evaluate=evaluate))
    cct.write()
    cct.train(options={'train_cfg.max_iters': 2})
    cct.config.model.auxiliary_head.perturbations.pop('FeatureNoise')
    cct.write()
    with pytest.raises(UserError, match=r'iter_2\.pth: its teacher does not fit .*auxiliary_head'):
        cct.train('other', resume=str(cct.folder / 'work/iter_2.pth'))


def test_a_checkpoint_with_more_decoders_is_refused(cct, trained):
    cct.config.model.auxiliary_head = None
    cct.config.model.type = 'EncoderDecoder'
    cct.config.train_dataloader.dataset.unlabeled = None
    cct.config.custom_hooks.pop(1)
    cct.write()
    with pytest.raises(UserError, match=r'auxiliary_head\S+ is no part of the model'):
        cct.train(resume=str(trained.checkpoint))


def test_an_iteration_beyond_the_end_is_refused(cct, trained):
    with pytest.raises(UserError, match=r'max_iters=5: .* is of iteration 6; expected 6 or more'):
        cct.train(resume=str(trained.checkpoint), options={'train_cfg.max_iters': 5})


def test_a_second_training_in_the_folder_is_refused(cct):
    with (
        locked_folder(cct.folder / 'work', 'another training'),
        pytest.raises(UserError, match='work: in use by another training, process'),
    ):
        cct.train()
    cct.train(options={'train_cfg.max_iters': 1})
