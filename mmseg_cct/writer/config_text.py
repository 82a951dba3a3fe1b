"""The text of a config: a method merged in, values written, checked before it is a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import DefaultScope

from mmseg_cct.config.compose import with_method
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.settings import training_problems
from mmseg_cct.utils.files import write_atomic

_WIDTH = 100  # columns
# CCT's ramp of λ_u, and an EMA teacher for its targets: the student's own would mislead it.
_WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'
_RAMP = dict(type='RampUpHook', attribute=_WEIGHT, schedule='exp', fraction=0.1)
HOOKS = dict(ramp_up=_RAMP, teacher=dict(type='TeacherHook', decay=0.99))


class Code(str):
    """An expression, such as `_base_.model.auxiliary_head`, that is written without quotes."""

    __repr__ = str.__str__


def installed_bases(*names: str) -> Code:
    """The `_base_` of a config outside of the checkout, which every launcher can read."""
    items = ''.join(f'    {name!r},\n' for name in names)
    comment = '  # mmengine evaluates `_base_` alone, before an import'
    return Code(f"__import__('mmseg_cct').bases({comment}\n{items})")


def assignment(name: str, value: Any) -> str:
    """Writes `name = value` on one line if it fits, else one item per line, or names that fill it.

    The value consists of dicts, lists and tuples of literals and `Code`.
    """
    return _text(value, f'{name} = ', 0)


def _text(value: Any, prefix: str, indent: int) -> str:
    opening, items, closing = _parts(value)
    inner = [_text(item, key, indent + 4) for key, item in items]
    comma = ',' if isinstance(value, tuple) and len(value) == 1 else ''
    line = f'{prefix}{opening}{", ".join(inner)}{comma}{closing}'
    if not inner or ('\n' not in line and indent + len(line) < _WIDTH):
        return line
    margin = ' ' * indent
    lines = [f'{margin}    {item},' for item in inner]
    if all(isinstance(item, str) for _, item in items):  # names fill their lines
        filled = lines[:1]
        for line in lines[1:]:
            if len(filled[-1]) + len(line.lstrip()) < _WIDTH:
                filled[-1] += f' {line.lstrip()}'
            else:
                filled.append(line)
        lines = filled
    return '\n'.join([f'{prefix}{opening}', *lines, f'{margin}{closing}'])


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]], str]:
    """Opening bracket, items with what is written before each, and closing bracket."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key.isidentifier() for key in value):
            return 'dict(', [(f'{key}=', item) for key, item in value.items()], ')'
        return '{', [(f'{key!r}: ', item) for key, item in value.items()], '}'
    for sequence_type, (opening, closing) in ((list, '[]'), (tuple, '()')):
        if isinstance(value, sequence_type):
            return opening, [('', item) for item in value], closing
    return repr(value), [], ''


def method_parts(
    method: str,
    model: Mapping[str, Any],
    bank: Mapping[str, Any],
    dataset: Mapping[str, Any],
    head: str,
) -> dict[str, Any]:
    """Merges a method into what a written config changes, which thus needs no tool to compose it.

    `model`, `bank` and `dataset` are the changes of the model, of its auxiliary decoders and of the
    training set; `head` is the type of the main decoder, which some methods' settings fit alone.
    Returns the parts to write by name: `model`, `train_dataloader` with its `dataset`,
    `default_hooks` and perhaps others. A part that the method removes is missing.
    """
    setting = dict(type='CCTSegmentor', **model)
    setting['decode_head'] = dict(setting.get('decode_head') or {}, type=head)
    setting['auxiliary_head'] = dict(type='PerturbedDecoderBank', **bank)
    loader = dict(dataset=dataset)
    config = Config(dict(model=setting, train_dataloader=loader, default_hooks=HOOKS))
    parts = with_method(config, method).to_dict()
    del parts['model']['decode_head']['type']
    for part in (parts['model'], parts['train_dataloader']['dataset']):
        for key in [key for key, value in part.items() if value in (None, {})]:
            del part[key]  # a written config has no base that a None would have to undo
    return parts


def write_config(file: Path, text: str) -> None:
    """Writes a config to `file`, if it can be trained; its bases may be relative to the file.

    Raises:
        UserError: The text does not load, or its parts do not fit.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f'.{file.stem}-{os.getpid()}.py')
    try:
        draft.write_text(text, encoding='utf-8')
        config = load_config(str(draft), {})
    except UserError as error:
        raise error.renamed(lambda key: key.replace(str(draft), str(file))) from error
    finally:
        draft.unlink(missing_ok=True)
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        raise_problems(training_problems(config))
    write_atomic(file, text.encode())
