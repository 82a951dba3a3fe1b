"""Reads the text of a config without running it."""

import ast
from typing import Any

from mmengine.config import Config

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import one_line


def read_config_text(text: str, name: str) -> Config:
    """Reads the text of a config that mmengine dumped into a checkpoint, called `name` in messages.

    `Config.fromstring` runs the text as Python, so a checkpoint from elsewhere would run code. Here
    it may hold assignments of literals and of `dict(key=value)` alone.
    """
    try:
        return Config(dict(_assignment(statement) for statement in ast.parse(text).body))
    except (KeyError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        found = f'its config is not a list of plain settings ({one_line(error, 80)})'
        expected = 'the text of a training, or the config by --config'
        raise UserError(name, found, expected) from None


def _assignment(statement: ast.stmt) -> tuple[str, Any]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        if isinstance(target, ast.Name):
            return target.id, _value(statement.value)
    raise ValueError(f'line {statement.lineno}: {ast.unparse(statement)}')


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        keywords = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
        is_dict = isinstance(node.func, ast.Name) and node.func.id == 'dict'
        # mmengine writes dict({...}) where a key is not an identifier
        braced = [_value(item) for item in node.args if isinstance(item, ast.Dict)]
        if not is_dict or None in keywords or len(braced) != len(node.args) or len(braced) > 1:
            raise ValueError(f'line {node.lineno}: {ast.unparse(node)}')
        return {**(braced[0] if braced else {}), **keywords}
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [_value(item) for item in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.Dict):
        if None in node.keys:
            raise ValueError(f'line {node.lineno}: {ast.unparse(node)}')
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values) if key}
    if isinstance(node, ast.Name) and node.id in ('inf', 'nan'):  # as `repr` writes them
        return float(node.id)
    return ast.literal_eval(node)
