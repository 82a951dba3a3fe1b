"""Loading workers that lack memory, files or processes: one line, and no waiting."""

import os
import re
import sys
import traceback
from contextlib import suppress
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from .text import error_line

_SIGNS = re.compile(
    r'DataLoader worker.*(exited|killed)|shared memory( object|\(shm\))|Too many open files|'
    r'received \d+ items of ancdata|start new thread'
)
_NEEDED = (
    'room in /dev/shm, open files (ulimit -n), processes (ulimit -u) and memory for the loading '
    'workers, or none of them: --cfg-options train_dataloader.num_workers=0 '
    'val_dataloader.num_workers=0'
)


def lacking(error: BaseException) -> str | None:
    """Describes an error of processes that lack something that they share; None for others."""
    frames = traceback.extract_tb(error.__traceback__)
    between = any('multiprocessing' in Path(frame.filename).parts for frame in frames)
    if not ((between and isinstance(error, (OSError, EOFError))) or _SIGNS.search(str(error))):
        return None
    return f'{error_line(error, 200)}; expected {_NEEDED}'


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the memory of the machine, a process or a GPU does not suffice."""
    # torch, which may not be imported here, has its own type only for GPUs; the last is oneDNN's
    said = ("can't allocate memory", 'could not create a primitive')
    is_torchs = type(error).__name__ == 'OutOfMemoryError' or any(
        map(str(error).__contains__, said)
    )
    return is_torchs or isinstance(error, MemoryError)


def end_workers_that_lose_a_batch() -> None:
    """Makes a loading worker end if it cannot pass on a batch.

    Python's queues only print the error, say that shared memory is full, and the training would
    wait for the batch forever.
    """
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as Loading

    Queue._on_queue_feeder_error = staticmethod(_end_worker)  # type: ignore[attr-defined]
    delete = getattr(Loading.__del__, 'whole', Loading.__del__)

    def delete_quietly(loading: Any) -> None:
        with suppress(AttributeError):  # its queues could not be made
            delete(loading)

    delete_quietly.whole = delete  # type: ignore[attr-defined]
    Loading.__del__ = delete_quietly  # type: ignore[method-assign]


def _end_worker(error: BaseException, batch: Any) -> None:
    from torch.utils.data import get_worker_info

    if get_worker_info() is None:
        traceback.print_exception(error)  # as Python does
        return
    # one write: workers do not mix lines
    print(f'a loading worker: {error_line(error, 200)}\n', end='', file=sys.stderr, flush=True)
    os._exit(1)
