"""Loaders with workers in tests."""

from contextlib import contextmanager

from torch.utils.data import Dataset

from mmseg_cct.errors import UserError


class Failing(Dataset):
    """Fails at each image; here, where a worker that does not fork can import it."""

    def __init__(self, message):
        self.message = message

    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise UserError(self.message)


@contextmanager
def closing_workers(loader):
    """Iterates over a `DataLoader` and ends its workers.

    An iterator that a traceback keeps alive is collected together with its queues, which then no
    longer tell the workers to end: torch waits five seconds for each.
    """
    batches = iter(loader)
    try:
        yield batches
    finally:
        if hasattr(batches, '_shutdown_workers'):
            batches._shutdown_workers()
