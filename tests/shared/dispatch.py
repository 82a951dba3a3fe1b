"""Counts what PyTorch runs, for guards on work and memory that no busy machine disturbs."""

from collections import Counter

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

ASKS_FOR_VALUES = ('_local_scalar_dense', 'nonzero', 'masked_select', '_unique2')


class DispatchCounter(TorchDispatchMode):
    """Counts operations and keeps the size of the largest tensor that any of them gave back."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.calls[func.overloadpacket.__name__] += 1
        sizes = [leaf.numel() for leaf in tree_flatten(result)[0] if isinstance(leaf, Tensor)]
        self.largest = max([self.largest, *sizes])
        return result


class HostWaits(TorchDispatchMode):
    """Names the operations for which the host waits until a GPU has done all that is queued.

    For tensors on the device `meta`, which runs everything but values, or for fake ones on a GPU.
    """

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == '_pin_memory':  # no fake tensor can
            return args[0]
        result = func(*args, **kwargs)
        devices = [
            leaf.device for leaf in tree_flatten((args, result))[0] if isinstance(leaf, Tensor)
        ]
        if name == 'lift_fresh':  # a Python list became a tensor
            waits = devices[0].type != 'cpu'
        elif name in ('_to_copy', 'copy_'):
            waits = len(set(devices)) > 1 and not kwargs.get('non_blocking', args[2:] == (True,))
        else:
            waits = name in ASKS_FOR_VALUES and devices[0].type != 'cpu'
        if waits:
            self.names.append(name)
        return result
