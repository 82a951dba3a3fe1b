"""Maps a function over a stream in threads, some results ahead of the consumer."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar('T')
R = TypeVar('R')
_THREADS = 2
_WAITING = 4  # results that are not consumed yet


def ahead(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yields a function's results in the order of the items, computing a few ahead.

    The function runs in other threads, the iteration over items in this one. An exception of the
    function is raised when its result is due, after the calls that were submitted have finished.
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > _WAITING:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
