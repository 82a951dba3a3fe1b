"""Loaders with workers in tests."""

from contextlib import contextmanager


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
