"""Bounds the work of a pickle before it is loaded, which a list of allowed types does not.

Sixty tuples, each of which holds the one before it twice, take a few bytes, and as a key of a dict
2^60 steps to be hashed.
"""

import pickletools
from dataclasses import dataclass
from typing import IO, Any

from mmseg_cct.errors import UserError

_TEXT_OR_NUMBER = {*('int', 'bool', 'int_or_bool', 'float', 'str', 'bytes', 'bytes_or_str', 'None')}
_CALLS = {'REDUCE', 'BUILD', 'OBJ', 'INST', 'NEWOBJ', 'NEWOBJ_EX'}
_GROWING = {'SETITEM', 'SETITEMS', 'APPEND', 'APPENDS', 'ADDITEMS', 'BUILD'}  # the object below
_MOST = 10**9


@dataclass(eq=False)
class _Value:
    """A value on the stack: how many values it consists of, shared ones counted each time."""

    size: int = 1
    is_key: bool = False  # text or a number


def require_little_work(pickled: IO[bytes], name: str) -> None:
    """Checks that a pickle's keys are text or numbers, and that it calls with few values.

    Args:
        pickled: At the pickle's first byte; it is read to the pickle's end.
        name: What messages call the file.

    Raises:
        UserError: A dict or set has other keys, or calls take far more values than the file holds.
        ValueError, LookupError: It is no pickle.
    """
    mark, called = _Value(), 0
    stack: list[_Value] = []
    memo: dict[int, _Value] = {}
    argument: Any
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
        if 'PUT' in opcode.name or opcode.name == 'MEMOIZE':
            memo[len(memo) if argument is None else argument] = stack[-1]
            continue
        if 'GET' in opcode.name:
            stack.append(memo[argument])
            continue
        if opcode.name in ('MARK', 'DUP'):
            stack.append(mark if opcode.name == 'MARK' else stack[-1])
            continue
        before = [kind.name for kind in opcode.stack_before]
        start = len(stack) - (before.index('mark') if 'mark' in before else len(before))
        if 'mark' in before:
            start -= stack[::-1].index(mark) + 1
        operands = [value for value in stack[start:] if value is not mark]
        del stack[start:]
        keys = {
            'SETITEM': operands[1:2], 'SETITEMS': operands[1::2], 'DICT': operands[::2],
            'ADDITEMS': operands[1:], 'FROZENSET': operands,
        }.get(opcode.name, [])  # fmt: skip
        if not all(key.is_key for key in keys):
            raise UserError(name, 'refused: a key in it is no text or number', 'a checkpoint')
        size = min(sum(value.size for value in operands), _MOST)
        if opcode.name in _CALLS:
            called += size
            if called > 10**6 + 100 * count:
                too_many = f'refused: its calls take more than {called:,} values'
                raise UserError(name, too_many, 'a checkpoint of tensors, numbers and text')
        if opcode.name in _GROWING:
            operands[0].size = size
            stack.append(operands[0])
        elif opcode.stack_after:
            text = len(argument) // 16 if isinstance(argument, (str, bytes)) else 0
            is_key = not operands and opcode.stack_after[0].name in _TEXT_OR_NUMBER
            stack.append(_Value(1 + size + text, is_key))
