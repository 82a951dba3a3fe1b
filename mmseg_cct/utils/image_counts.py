"""Counts of written, skipped and failed images, and a process's share of those that are left."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from .image_files import explain_unreadable
from .shares import gather, own_share, progress_bar

T = TypeVar('T')


@dataclass
class ImageCounts:
    """Counts of written, skipped and failed images.

    Attributes:
        written: Number of images whose files were written.
        skipped: Number of images that an earlier run had finished.
        failed: A line for each image that could not be read.
    """

    written: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)

    def describe(self, out: str) -> str:
        """Gives the counts in one line; `out` is the output folder."""
        return (
            f'{self.written} written to {out}, {self.skipped} there already, '
            f'{len(self.failed)} unreadable'
        )


class SharedImages(Generic[T]):
    """The images that are left to do, shared between connected processes.

    As a context it shows a bar.

    Args:
        todo: The images, the same ones in all processes.
        skipped: Number of images that an earlier run had finished.
    """

    def __init__(self, todo: Sequence[T], skipped: int = 0) -> None:
        self.own = own_share(todo)
        self._counts = ImageCounts(skipped=skipped)
        self._bar = progress_bar(len(self.own), skipped)

    def __enter__(self) -> 'SharedImages[T]':
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.__exit__(*raised)

    def written(self, number: int = 1) -> None:
        """Counts images whose files were written."""
        self._counts.written += number
        self._bar.update(number)

    def unreadable(self, path: str | Path, error: Exception) -> None:
        """Counts an image that could not be read."""
        self._counts.failed.append(explain_unreadable(path, 'image', error))
        self._bar.update()

    def total(self) -> ImageCounts:
        """Waits for all processes and adds up their counts."""
        parts = gather(self._counts)
        failed = sorted(line for part in parts for line in part.failed)
        return ImageCounts(sum(part.written for part in parts), self._counts.skipped, failed)
