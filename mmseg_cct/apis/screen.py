"""Shortens the log on the terminal; the file keeps all of it."""

import copy
import logging
import re

from mmengine.logging.logger import MMFormatter

# Beginnings of mmengine's lines that go to the log file only: the environment, the dumped config,
# the table of hooks, and hints about what users cannot change.
_FOR_THE_FILE = (
    '\n------',
    'Config:\n',
    'Hooks will be executed',
    'Distributed training is not used',
    'The prefix is not set in metric class',
    '"FileClient" will be deprecated',
    '"HardDiskBackend" is the alias',
    'Exp name:',
    'Checkpoints will be saved to',
    'per class results:',  # the table follows
)
_STEP = re.compile(r'(?:Iter|Epoch)\((\w+)\)\s*(?:\[[^\]]*\]){1,2}')
# The terms of the total loss: `loss`, `decode.loss_ce`, `aux.loss`; not a ramp's `….loss_weight`.
_TERM = re.compile(r'(?:.+\.)?loss(?!_weight)\w*')
_OF_A_CLASS = re.compile(r'(?:.+/)?(?:IoU|Acc)\.')


class ScreenFormatter(MMFormatter):
    """mmengine's format, with shorter lines for the steps of a training or validation."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats a copy, because other handlers get the same record."""
        record = copy.copy(record)
        record.msg = short_step(str(record.msg))
        return super().format(record)


def is_for_the_screen(record: logging.LogRecord) -> bool:
    """Tells what a user needs from what is worth keeping in the file."""
    return not str(record.msg).startswith(_FOR_THE_FILE)


def short_step(line: str) -> str:
    """Shortens the line of a step to learning rate, remaining time and losses, or to the metrics.

    `Iter(train) [20/60]  lr: 7.0e-03  eta: 0:01:10  time: 0.04  loss: 1.1  decode.acc_seg: 85.5`
    becomes `Iter(train) [20/60]  lr: 7.0e-03  eta: 0:01:10  loss: 1.1`. IoUs of single classes are
    in the table above their line.
    """
    step = _STEP.match(line)
    if step is None:
        return line
    values = re.split(r'\s{2,}', line[step.end() :].strip())
    names = [value.partition(': ')[0] for value in values]
    if step[1] == 'train':
        kept = [name in ('lr', 'eta') or bool(_TERM.fullmatch(name)) for name in names]
    else:
        dropped = ('time', 'data_time', 'memory')
        kept = [name not in dropped and not _OF_A_CLASS.match(name) for name in names]
    return '  '.join([step[0], *(value for value, keep in zip(values, kept) if keep)])
