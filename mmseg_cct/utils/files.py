"""Atomic file writes."""

import os
from pathlib import Path


def write_atomic(file: str | Path, data: bytes) -> None:
    """Writes a file atomically: a kill at any moment leaves the old one or the new one.

    Args:
        file: Its path; missing folders are made.
        data: Its content.
    """
    path = Path(file)
    part = path.with_name(f'.{path.name}.part')
    path.parent.mkdir(parents=True, exist_ok=True)
    with part.open('wb') as opened:
        opened.write(data)
        opened.flush()
        # A rename may reach the disk before the data, so a power cut would leave an empty file.
        os.fsync(opened.fileno())
    os.replace(part, path)
