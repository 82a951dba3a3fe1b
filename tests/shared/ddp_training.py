"""Two iterations under DDP, which must be those of the bare model."""

import torch
import torch.distributed
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS


def assert_same_under_ddp(model, alone, step, folder, lr=0.1):
    """Trains a model under DDP and its twin without, by `step(model, optim_wrapper)`.

    DDP does not look for unused parameters: the second iteration fails if a parameter got no
    gradient in the first.
    """
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{folder}/rendezvous', rank=0, world_size=1
    )
    try:
        ddp = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)
        wrapped = MODEL_WRAPPERS.build(dict(ddp, module=model, find_unused_parameters=False))
        for each in (wrapped, alone):
            wrapper = OptimWrapper(torch.optim.SGD(each.parameters(), lr))
            for _ in range(2):
                torch.manual_seed(2)
                step(each, wrapper)
    finally:
        torch.distributed.destroy_process_group()
    for actual, expected in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(actual, expected)
