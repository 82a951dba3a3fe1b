"""Counts what PyTorch runs, for guards on work and memory that no busy machine disturbs."""

from collections import Counter

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


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
