import os

import pytest
import torch
from dispatch import DispatchCounter
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks.non_finite_loss_hook import NonFiniteLossHook, _files
from mmseg_cct.errors import UserError


def test_a_file_with_several_views_is_named_once():
    def samples(*names):
        return [SegDataSample(metainfo=dict(img_path=name)) for name in names]

    views = dict(labeled=samples('a'), unlabeled=samples('b'), unlabeled_strong_0=samples('b'))
    assert _files(dict(data_samples=views)) == 'a, b'


def test_the_log_takes_one_copy_of_all_terms():
    hook, outputs = NonFiniteLossHook(), dict(loss=torch.tensor(-1.0), loss_a=torch.tensor(-1.0))
    hook.after_train_iter(None, 0, outputs=outputs)  # without losses they stay
    assert outputs == dict(loss=torch.tensor(-1.0), loss_a=torch.tensor(-1.0))
    losses = dict(
        loss_a=torch.tensor([1.0, 3.0]),
        loss_b=torch.tensor(0.5),
        share=torch.tensor(0.2),
        elsewhere=torch.tensor(0.0, device='meta'),  # logged by mmengine as it is
    )
    with DispatchCounter() as counter:
        hook._watch(None, None, losses)
        hook._judge()
    assert counter.calls['_local_scalar_dense'] <= 1
    outputs['other'] = 'kept'
    hook.after_train_iter(None, 0, outputs=outputs)
    assert {k: float(v) for k, v in outputs.items() if k != 'other'} == dict(loss=2.5, loss_a=2.0)
    assert outputs['other'] == 'kept' and 'share' not in outputs


@HOOKS.register_module(force=True)
class PoisonHook(Hook):
    """Makes the weighted consistency loss NaN (or any value) in one iteration."""

    priority = 'VERY_LOW'

    def __init__(self, iteration, weight=float('nan')):
        self.iteration, self.weight = iteration, weight

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == self.iteration:
            runner.model.auxiliary_head.loss_consistency.loss_weight = self.weight


@OPTIM_WRAPPERS.register_module(force=True)
class ScaledOptimWrapper(OptimWrapper):
    """Loss scaling as `AmpOptimWrapper` does it on a GPU; two gradients overflow, as in float16."""

    skipped = 0

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.loss_scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)
        ScaledOptimWrapper.skipped = 0

    def backward(self, loss, **kwargs):
        self.loss_scaler.scale(loss).backward(**kwargs)
        if self._inner_count < 2:
            self.optimizer.param_groups[0]['params'][0].grad.fill_(float('inf'))
        self._inner_count += 1

    def step(self, **kwargs):
        before = self.loss_scaler.get_scale()
        self.loss_scaler.step(self.optimizer, **kwargs)
        self.loss_scaler.update()
        ScaledOptimWrapper.skipped += self.loss_scaler.get_scale() < before


def poisoned(cct, iteration=3, **kwargs):
    cct.config.custom_hooks.append(dict(type='PoisonHook', iteration=iteration, **kwargs))
    cct.write()
    return cct


def test_the_message_names_iteration_term_and_files_and_the_checkpoint_before_it(cct, trained):
    """Resumed without the poison it is the run that never had any."""
    with pytest.raises(UserError, match=r'^iteration 3: aux\.loss is nan on .+\.png') as error:
        poisoned(cct).train()
    message = str(error.value)
    files = message.partition(' is nan on ')[2].partition(';')[0].split(', ')
    assert len(files) == 4 and all(map(os.path.isfile, files)) and '\n' not in message
    assert 'iter_3.pth is the state before this step' in message
    assert (cct.folder / 'work/last_checkpoint').read_text().endswith('iter_2.pth')
    cct.config.custom_hooks.pop()
    cct.write()
    cct.train('again', resume=str(cct.folder / 'work/nonfinite_iter_3.pth'))
    logged = cct.scalars(cct.folder / 'again')
    assert list(logged) == [4, 5, 6]
    for iteration, (line,) in logged.items():
        assert line['loss'] == pytest.approx(trained.logged[iteration][0]['loss'], rel=1e-5)


@pytest.mark.slow
def test_infinite_losses_and_iterations_without_a_step_count_too(cct):
    with pytest.raises(UserError, match=r'^iteration 2: aux.loss is inf on '):
        poisoned(cct, 2, weight=1e45).train(options={'optim_wrapper.accumulative_counts': 2})


@pytest.mark.slow
def test_gradients_that_overflow_under_a_scaler_are_no_alarm(cct):
    cct.config.optim_wrapper.update(type='ScaledOptimWrapper')
    with pytest.raises(UserError, match=r'^iteration 3: aux.loss is nan'):
        poisoned(cct).train()
    assert ScaledOptimWrapper.skipped == 3  # two that overflowed, and that of the nan


@pytest.mark.gpu
def test_the_verdict_waits_for_the_forward_pass_alone():
    from mmseg_cct.engine.hooks.non_finite_loss_hook import _Terms

    value = torch.ones((), device='cuda')
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode('error')
    try:
        verdict = _Terms({'loss': value})
        torch.cuda._sleep(10**9)  # half a second of backward pass
        queued = torch.cuda.Event()
        queued.record()
        assert verdict.read()[1] is False and not queued.query()
    finally:
        torch.cuda.set_sync_debug_mode('default')
