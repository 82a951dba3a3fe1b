"""Threads that read and write images, kept until the process ends.

Python's join returns before the thread has released its storage in OpenCV, which it does under
OpenCV's mutex. A loader's worker that is forked at that moment inherits the mutex locked, and waits
in its first `imdecode` for ever. So no thread that reads images ends before a fork: idle ones hold
nothing.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def image_threads() -> ThreadPoolExecutor:
    """Returns the process's pool, which nobody shuts down; its functions submit nothing to it."""
    return ThreadPoolExecutor(min(16, (os.cpu_count() or 1) + 4), 'images')


if hasattr(os, 'register_at_fork'):  # a fork has none of its parent's threads
    os.register_at_fork(after_in_child=image_threads.cache_clear)
