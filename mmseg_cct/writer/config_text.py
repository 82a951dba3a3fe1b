"""The text of a config: a method merged in, values written, checked before it is a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import DefaultScope
from yapf.yapflib import yapf_api

from mmseg_cct.config.compose import with_method
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.settings import training_problems
from mmseg_cct.utils.files import write_atomic

_STYLE = '{based_on_style: facebook, column_limit: 100}'
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
    """Writes `name = value` on one line; the value is of dicts, lists, tuples, literals, `Code`."""
    return f'{name} = {_code(value)}'


def _code(value: Any) -> str:
    """Writes a value, dicts as calls of `dict` where their keys are names."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key.isidentifier() for key in value):
            return f'dict({", ".join(f"{key}={_code(item)}" for key, item in value.items())})'
        return f'{{{", ".join(f"{key!r}: {_code(item)}" for key, item in value.items())}}}'
    if isinstance(value, list):
        return f'[{", ".join(map(_code, value))}]'
    if isinstance(value, tuple):
        return f'({", ".join(map(_code, value))}{"," if len(value) == 1 else ""})'
    return repr(value)


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
    """Formats a config and writes it, if it can be trained; its bases may be relative to the file.

    Raises:
        UserError: The text does not load, or its parts do not fit.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    text, _ = yapf_api.FormatCode(text, style_config=_STYLE)
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
