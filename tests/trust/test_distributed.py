"""Two gloo ranks on the CPU against one process with the joined batch.

The joined batch has the same images: rank r of 2 takes the positions r, r + 2, ... of the stream.
For one and the same loss the model must be free of what looks at a batch: no BatchNorm (GN here; on
a CPU torch has no SyncBN) and perturbations that draw nothing (Con-Msk, Obj-Msk).
"""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest
import tiny
import torch
from ranks import end_as_torchrun

from mmseg_cct.apis.device import fit_to_device
from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError

ITERATIONS = 3
GN = dict(type='GN', num_groups=2)

RECORDER = """
import hashlib, json
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

@HOOKS.register_module()
class RecorderHook(Hook):
    priority = 'VERY_LOW'

    def before_train(self, runner):
        self.file = open(f'{runner.work_dir}/rank{get_rank()}.jsonl', 'w')

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        samples = data_batch['data_samples']
        self.files = [s.img_path for branch in samples.values() for s in branch]
        self.draw = torch.random.get_rng_state().sum().item()

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        state = getattr(runner.model, 'module', runner.model).state_dict()
        raw = b''.join(value.cpu().numpy().tobytes() for value in state.values())
        json.dump(dict(
            files=self.files, draw=self.draw, weights=hashlib.sha256(raw).hexdigest(),
            outputs={k: v.item() for k, v in outputs.items()}), self.file)
        self.file.write('\\n')
        self.file.flush()
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return str(sock.getsockname()[1])


def records(work_dir, rank=0):
    return [json.loads(line) for line in (work_dir / f'rank{rank}.jsonl').read_text().splitlines()]


@pytest.fixture(scope='module')
def recorder(tmp_path_factory):
    """A folder with the hook, for the module path of this process and of those it starts."""
    folder = tmp_path_factory.mktemp('recorder')
    (folder / 'recorder_hook.py').write_text(textwrap.dedent(RECORDER))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def exact(cct):
    """Makes the loss a plain mean over images: see above."""
    config = cct.config
    config.model.backbone.norm_cfg = GN
    config.model.neck.norm_cfg = GN
    config.model.auxiliary_head.perturbations = dict(
        context=dict(type='ContextMasking', num_decoders=1),
        objects=dict(type='ObjectMasking', num_decoders=1),
    )
    config.custom_imports.imports.append('recorder_hook')
    config.custom_hooks.append(dict(type='RecorderHook'))
    config.train_cfg.update(max_iters=ITERATIONS, val_interval=ITERATIONS)
    config.param_scheduler[0].end = 2 * ITERATIONS  # at its end the rate is 0
    cct.write()
    return cct


def _rank(cct, rank, port, work_dir, options):
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='127.0.0.1',
        MASTER_PORT=port,
    )  # fmt: skip
    sys.stderr = open(cct.folder / f'err{rank}.txt', 'w')  # noqa: SIM115
    options = {'experiment_name': f'rank{rank}', **options}
    raise SystemExit(cct.tool_main(work_dir, options))


def two_ranks(cct, work_dir='two', options=None):
    """Trains in two processes that share nothing but a port; gives their exit codes."""
    context, port = multiprocessing.get_context('fork'), free_port()
    ranks = [
        context.Process(target=_rank, args=(cct, rank, port, work_dir, options or {}))
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    end_as_torchrun(ranks)
    return [process.exitcode for process in ranks]


@pytest.fixture
def pair(slow, cct, recorder):
    """A config for one process or two, and `tool_main`, which trains and reports a mistake."""

    def tool_main(work_dir, options):
        with user_errors_as_one_line():
            train(
                prepare_training(
                    str(cct.file), work_dir=str(cct.folder / work_dir), options=options,
                    launcher='pytorch', resume=options.pop('resume', None),
                )
            )  # fmt: skip
        return 0

    cct.tool_main = tool_main
    return exact(cct)


@pytest.mark.skipif(torch.cuda.is_available(), reason='forks, which CUDA does not survive')
def test_two_ranks_with_batch_norm_resume_to_the_same_weights(pair):
    """Statistics are those of both ranks' images, and DDP takes the layout of the hook."""
    tiny.widen(pair.config.model)
    for part in (pair.config.model.backbone, pair.config.model.neck):
        part.norm_cfg = dict(type='SyncBN')
    pair.config.default_hooks.memory_format = dict(type='ChannelsLastHook')
    pair.config.custom_hooks.append(dict(type='TeacherHook', decay=0.5))
    pair.config.train_cfg.val_interval = 100
    pair.config.default_hooks.checkpoint.update(interval=1, max_keep_ckpts=-1)
    pair.write()
    assert two_ranks(pair, 'whole') == [0, 0], (pair.folder / 'err0.txt').read_text()
    for first, second in zip(*(records(pair.folder / 'whole', rank) for rank in range(2))):
        assert first['weights'] == second['weights']  # statistics included

    options = {'resume': str(pair.folder / 'whole/iter_1.pth')}
    assert two_ranks(pair, 'resumed', options) == [0, 0], (pair.folder / 'err0.txt').read_text()
    contents = [
        pair.load(pair.folder / name / f'iter_{ITERATIONS}.pth') for name in ('whole', 'resumed')
    ]
    for network in ('state_dict', 'teacher_state_dict'):
        for name, weight in contents[0][network].items():
            assert torch.equal(contents[1][network][name], weight), (network, name)


def dist_train(run, project_root, recorder):
    """Trains on two ranks through tools/dist_train.sh into `two`."""
    env = {
        **os.environ, 'OMP_NUM_THREADS': '1', 'PORT': free_port(), 'PYTHONWARNINGS': 'ignore',
        'PATH': f'{os.path.dirname(sys.executable)}:{os.environ["PATH"]}',
        'PYTHONPATH': str(recorder),
    }  # fmt: skip
    done = subprocess.run(
        ['bash', f'{project_root}/tools/dist_train.sh', str(run.file), '2', '--work-dir', 'two'],
        env=env, cwd=run.folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(torch.cuda.is_available(), reason='gloo is for CPUs')
def test_two_ranks_train_as_one_process_with_the_joined_batch(pair, project_root, recorder):
    """Through tools/dist_train.sh, as a user starts it."""
    pair.config.custom_hooks.append(dict(type='TeacherHook', decay=0.5))
    # No padding: each rank takes the mean over its own real pixels, as every loss of MMSeg does.
    for branch in pair.config.train_dataloader.dataset.values():
        for transform in branch['pipeline'] if isinstance(branch, dict) else ():
            if transform['type'] == 'RandomResize':
                transform['ratio_range'] = (1.0, 1.5)
    pair.write()
    pair.train('one', {'train_dataloader.batch_size': 4})
    dist_train(pair, project_root, recorder)

    one = records(pair.folder / 'one')
    ranks = [records(pair.folder / 'two', rank) for rank in range(2)]
    assert len(one) == len(ranks[0]) == len(ranks[1]) == ITERATIONS
    for joined, first, second in zip(one, *ranks):
        assert first['weights'] == second['weights']
        assert first['draw'] != second['draw']
        assert sorted(first['files'] + second['files']) == sorted(joined['files'])
        for key, value in joined['outputs'].items():
            mean = (first['outputs'][key] + second['outputs'][key]) / 2
            assert mean == pytest.approx(value, rel=1e-5, abs=1e-6), key
    assert len({line['weights'] for line in one}) == ITERATIONS  # or equality would say nothing

    last = f'iter_{ITERATIONS}.pth'
    contents = [pair.load(pair.folder / name / last) for name in ('one', 'two')]
    for network in ('state_dict', 'teacher_state_dict'):
        for name, weight in contents[0][network].items():
            torch.testing.assert_close(contents[1][network][name], weight, rtol=1e-4, atol=1e-6)
    # 3 validation images: one of them is seen by both ranks and must count once
    metrics = [content['message_hub']['log_scalars'] for content in contents]
    assert 'val/mIoU' not in metrics[0]  # the checkpoint is from before the validation
    scores = [validation(pair.folder / name) for name in ('one', 'two')]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3) and scores[0] > 0


def validation(work_dir):
    """The only mIoU that a run logged."""
    (path,) = work_dir.glob('*/vis_data/scalars.json')
    (score,) = [
        json.loads(line)['mIoU'] for line in path.read_text().splitlines() if 'mIoU' in line
    ]
    return score


@pytest.mark.skipif(torch.cuda.is_available(), reason='forks, which CUDA does not survive')
def test_a_loss_that_is_not_finite_on_one_rank_stops_both(pair):
    """One message, which names the rank and its files, and no rank that waits for ever."""
    (pair.folder / 'poison_rank.py').write_text(
        'from mmengine.dist import get_rank\n'
        'from mmengine.hooks import Hook\n'
        'from mmengine.registry import HOOKS\n\n'
        '@HOOKS.register_module(force=True)\n'
        'class PoisonRankHook(Hook):\n'
        '    priority = "VERY_LOW"\n'
        '    def before_train_iter(self, runner, batch_idx, data_batch=None):\n'
        '        if runner.iter == 1 and get_rank() == 1:\n'
        '            bank = runner.model.module.auxiliary_head\n'
        '            bank.loss_consistency.loss_weight = float("nan")\n'
    )
    sys.path.insert(0, str(pair.folder))
    try:
        pair.config.custom_imports.imports.append('poison_rank')
        pair.config.custom_hooks.append(dict(type='PoisonRankHook'))
        pair.write()
        assert two_ranks(pair) == [2, -signal.SIGTERM]
    finally:
        sys.path.remove(str(pair.folder))
    lines = [
        line
        for rank in range(2)
        for line in (pair.folder / f'err{rank}.txt').read_text().splitlines()
        if line.startswith('error: ')
    ]
    (line,) = lines
    assert line.startswith('error: iteration 1 (rank 1): aux.loss is nan on ')
    assert (pair.folder / 'two/nonfinite_iter_1.pth').is_file()


@pytest.mark.skipif(torch.cuda.is_available(), reason='forks, which CUDA does not survive')
@pytest.mark.parametrize(
    'options',
    [
        {'model.backbone.with_cp': True},
        {'activation_checkpointing': ['backbone']},
        {'optim_wrapper.accumulative_counts': 2, 'optim_wrapper.type': 'CPUAmpOptimWrapper'},
    ],
)
def test_options_that_touch_the_backward_pass_work_on_two_ranks(pair, options):
    pair.config.custom_hooks.append(dict(type='EMAHook'))
    pair.config.train_cfg.val_interval = 100
    pair.write()
    assert two_ranks(pair, options=options) == [0, 0], (pair.folder / 'err0.txt').read_text()
    for first, second in zip(*(records(pair.folder / 'two', rank) for rank in range(2))):
        assert first['weights'] == second['weights']


def test_checkpointed_activations_and_accumulation_exclude_each_other_in_ddp(pair):
    """torch fails an assertion of its own there."""
    options = {'optim_wrapper.accumulative_counts': 2, 'model.backbone.with_cp': True}
    prepare_training(str(pair.file), options=options)  # one process can do both
    with pytest.raises(UserError, match=r'accumulative_counts: more than 1 with .*with_cp=True'):
        prepare_training(str(pair.file), options=options, launcher='pytorch')


def test_checkpointed_activations_and_domains_exclude_each_other_in_ddp(pair):
    options = {'model.backbone.with_cp': True, 'model.domains': dict(sea={}, land={})}
    config = load_config(str(pair.file), {})
    config.merge_from_dict(options)
    fit_to_device(config, 'none')
    with pytest.raises(UserError, match=r'with_cp=True: with several domains on several processes'):
        fit_to_device(config, 'pytorch')
