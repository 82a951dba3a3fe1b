import pytest
import torch

from mmseg_cct.engine.optimizers.cpu_amp_optim_wrapper import CPUAmpOptimWrapper


def test_autocast_covers_the_forward_pass_only():
    model = torch.nn.Linear(4, 4)
    wrapper = CPUAmpOptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1))
    with wrapper.optim_context(model):
        inside = model(torch.ones(1, 4))
    assert inside.dtype is torch.bfloat16
    assert model(torch.ones(1, 4)).dtype is torch.float32
    wrapper.update_params(inside.float().sum())
    assert model.weight.dtype is torch.float32


@pytest.mark.parametrize('has_bfloat16', [True, False])
def test_a_cpu_without_bfloat16_is_told_of_the_slow_step(monkeypatch, messages, has_bfloat16):
    module = 'mmseg_cct.engine.optimizers.cpu_amp_optim_wrapper'
    monkeypatch.setattr(f'{module}._computes_bfloat16', lambda: has_bfloat16)
    CPUAmpOptimWrapper(torch.optim.SGD([torch.zeros(1)], lr=0.1))
    assert len(messages) == (not has_bfloat16)
    assert all('expected OptimWrapper (no --amp)' in line for line in messages)
