"""The average, against mmengine's."""

import torch
from mmengine.model import MomentumAnnealingEMA
from torch import nn

from mmseg_cct.engine.averaged_model import MultiTensorEMA


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))


def step(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.rand_like(parameter)
    model(torch.rand(2, 2, 5, 5))


def test_averages_are_mmengines():
    model = network()
    own = MultiTensorEMA(model, momentum=0.3, gamma=2)
    theirs = MomentumAnnealingEMA(model, momentum=0.3, gamma=2, update_buffers=True)
    for _ in range(6):
        step(model)
        own.update_parameters(model)
        theirs.update_parameters(model)
    assert own.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(own.state_dict()[name], value, msg=name)


def test_an_average_that_was_laid_out_anew_is_averaged_on():
    model = network()
    average = MultiTensorEMA(model, momentum=0.999, gamma=1)
    average.module.to(memory_format=torch.channels_last)
    for _ in range(3):
        step(model)
        average.update_parameters(model)
    torch.testing.assert_close(average.module[0].weight, model[0].weight, rtol=1e-2, atol=1e-2)
