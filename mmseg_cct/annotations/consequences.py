"""What an import leaves out, changes or reads with a doubt, and what becomes of it."""

from collections import Counter
from dataclasses import dataclass, field

from mmseg_cct.utils.templates import markdown_table

_NAMED = 3  # images by name


@dataclass
class _Row:
    numbers: Counter[str] = field(default_factory=Counter)  # by image
    out_of: int = 0
    fault: str = ''


class Consequences:
    """Counts what was drawn but is not in the masks as it was drawn, by its kind and its fate."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}

    def add(
        self, what: str, becomes: str, image: str, number: int = 1, out_of: int = 0, fault: str = ''
    ) -> None:
        """Counts a number of one kind on an image; `out_of` is the whole that it is a share of."""
        if number:
            row = self._rows.setdefault((what, becomes), _Row(fault=fault))
            row.numbers[image] += number
            row.out_of += out_of

    def __getitem__(self, what: str) -> int:
        """The number of one kind, whatever became of it."""
        return sum(row.numbers.total() for kind, row in self._rows.items() if kind[0] == what)

    def describe(self) -> str:
        """Describes all kinds as a table; empty if there is nothing to tell."""
        rows = []
        for (what, becomes), row in self._rows.items():
            names, number = list(row.numbers), row.numbers.total()
            share = f' ({number / row.out_of:.1%})' if row.out_of else ''
            more = ', ...' if len(names) > _NAMED else ''
            fault = f' ({row.fault})' if row.fault else ''
            images = f'{len(names)}: {", ".join(names[:_NAMED])}{more}{fault}'
            rows.append([what, f'{number}{share}', images, becomes])
        header = ['not as drawn', 'number', 'images', 'becomes']
        return markdown_table(header, rows, 'lrll') if rows else ''
