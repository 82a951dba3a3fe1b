"""Several processes that share a list of images, each image to one of them.

They speak to each other at the start, when the first lists what is left, and at the end, when their
counts are added up. In between a process that dies takes nothing along but its current image.
"""

import datetime
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch.distributed
from mmengine.dist import broadcast_object_list, get_rank, get_world_size
from tqdm import tqdm

from mmseg_cct.errors import UserError

T = TypeVar('T')

# The first to finish its share waits for the last.
_TIMEOUT = datetime.timedelta(days=30)


@contextmanager
def connected(launcher: str) -> Iterator[int]:
    """Connects the processes that a launcher started, by gloo, which needs no GPU.

    Args:
        launcher: `none` for a single process; for others the ranks are set (`set_ranks`).

    Yields:
        The rank of this process; the body runs connected.
    """
    if launcher == 'none':
        yield 0
        return
    torch.distributed.init_process_group('gloo', timeout=_TIMEOUT)
    yield get_rank()
    # After an error the process ends, and its message needs the group's store.
    torch.distributed.destroy_process_group()


def on_first_process(function: Callable[[], T]) -> T:
    """Calls a function on the first process and gives its result to all.

    Args:
        function: What to call.

    Returns:
        Its result.

    Raises:
        UserError: On every process, where the first raised it.
    """
    outcome: list[Any] = [None, None]
    if get_rank() == 0:
        try:
            outcome[0] = function()
        except UserError as error:
            outcome[1] = str(error)
    broadcast_object_list(outcome)
    result, mistake = outcome
    if mistake is not None:
        raise UserError(mistake)
    return result


def own_share(items: Sequence[T]) -> Sequence[T]:
    """Selects this process's items: of n processes, each takes every n-th.

    Args:
        items: The same on all processes.

    Returns:
        Those of this process.
    """
    return items[get_rank() :: get_world_size()]


def gather(value: T) -> list[T]:
    """Waits until all processes are done with their shares.

    Args:
        value: What this process has to tell.

    Returns:
        The values of all processes, by rank.

    Raises:
        UserError: Another process ended before.
    """
    if get_world_size() == 1:
        return [value]
    values: list[Any] = [None] * get_world_size()
    try:
        torch.distributed.all_gather_object(values, value)
    except RuntimeError:
        raise UserError(
            'another process ended before its share was done; run the same command again: finished '
            'images are kept'
        ) from None
    return values


def progress_bar(number: int, done: int) -> tqdm:
    """Shows rate and time left on the first process, which speaks for all.

    Args:
        number: Images in the share of this process.
        done: Images that an earlier run finished, over all processes.

    Returns:
        The bar; `update` it after each image.
    """
    processes = get_world_size()
    return tqdm(
        desc=f'process 1 of {processes}' if processes > 1 else None,
        initial=done // processes,
        total=done // processes + number,
        unit='image',
        smoothing=0.1,
        disable=get_rank() != 0,
    )
