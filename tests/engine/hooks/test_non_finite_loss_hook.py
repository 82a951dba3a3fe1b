import os
from types import SimpleNamespace

import pytest
import rank_hooks  # noqa: F401 (registers PoisonHook)
import torch
from mmengine.optim import OptimWrapper, OptimWrapperDict

from mmseg_cct.engine.hooks.non_finite_loss_hook import NonFiniteLossHook
from mmseg_cct.errors import UserError


class Losses(torch.nn.Module):
    """Returns what it is given."""

    def forward(self, losses):
        return losses


def watched():
    """A hook that watches the losses of a model, and the model."""
    hook, model = NonFiniteLossHook(), Losses()
    hook.before_train(SimpleNamespace(model=model, optim_wrapper=OptimWrapperDict()))
    return hook, model


def test_the_log_has_the_terms_of_the_batch_and_the_sum_of_the_losses():
    (hook, model), outputs = watched(), dict.fromkeys(('loss', 'loss_a'), torch.tensor(-1.0))
    terms = dict(loss_a=[1.0, 3.0], loss_b=0.5, share=0.2)
    model({name: torch.tensor(value) for name, value in terms.items()})
    hook.after_train_iter(None, 0, outputs=outputs)
    assert outputs == dict(loss=torch.tensor(2.5), loss_a=torch.tensor(2.0))


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
def test_gradients_that_overflow_under_a_scaler_are_no_alarm(cct, monkeypatch):
    def step(wrapper, **_):  # the scaler skips it
        wrapper.optimizer.param_groups[0]['params'][0].grad.fill_(float('inf'))

    monkeypatch.setattr(OptimWrapper, 'step', step)
    with pytest.raises(UserError, match=r'^iteration 3: aux.loss is nan'):
        poisoned(cct).train()


@pytest.mark.gpu
def test_the_verdict_waits_for_the_forward_pass_alone():
    (hook, model), value = watched(), torch.ones((), device='cuda')
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode('error')
    try:
        model({'loss': value})
        torch.cuda._sleep(10**9)  # half a second of backward pass
        queued = torch.cuda.Event()
        queued.record()
        hook.after_train_iter(None, 0)
        assert not queued.query()
    finally:
        torch.cuda.set_sync_debug_mode('default')
