"""Overrides of a config: whether they have an effect, and what follows from them."""

import inspect
from typing import Any

from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.errors import UserError
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.text import one_line

from .walk import at, listed, settings_of

# Names for the last iteration in mmengine's schedulers, their arguments and their states.
SCHEDULER_ENDS = ('end', 'total_iters', 'T_max', 'total_steps')
# Top-level keys of a config that a program reads.
READ_KEYS = {
    *(inspect.signature(Runner.__init__).parameters.keys() - {'self', 'cfg'}),
    # what mmengine's runners read besides their arguments
    *('runner_type', 'model_wrapper_cfg', 'find_unused_parameters', 'sync_bn', 'compile'),
    *('activation_checkpointing', 'efficient_conv_bn_eval', 'strategy'),
    'init_weights_for_test_or_val',
    # what this package and MMSeg read
    *('test_pipeline', 'tta_model', 'tta_pipeline', 'pseudo_labels'),
}
_ABSENT = object()


def merge_options(config: Config, file: str, options: dict[str, Any]) -> None:
    """Merges options over the config of a file, and warns of new keys.

    Raises:
        UserError: An option does not fit the config, or would do nothing.
    """
    for key in options:
        _require_effect(config, file, key)
        if at(config, key, _ABSENT) is _ABSENT:
            for outer, value in settings_of(config):
                if not key.startswith(f'{outer}.') or hasattr(value, 'keys'):
                    continue
                if type(value) is not list:
                    raise UserError(
                        f'--cfg-options {key}',
                        f'does not fit {file}, where {outer} is {value!r}',
                        f'a dict, which a file can give: {outer} = dict(...)',
                    )
                _require_index(key, outer, value, file)
            if not key.endswith('._delete_'):  # mmengine's word for replacing a dict
                warn(f'--cfg-options {key}: a new key, the config has none of this name')
    try:
        config.merge_from_dict(options)
    except Exception as error:
        raise UserError('--cfg-options', f'does not fit {file}: {one_line(error)}') from error


def _require_index(key: str, outer: str, parts: list[Any], file: str) -> None:
    """Checks that a key goes on from a list with the number of one of its parts."""
    number = key.removeprefix(f'{outer}.').split('.')[0]
    if number.isdecimal() and int(number) < len(parts):
        return
    named = [
        f'{outer}.{index} ({part["type"]})' if at(part, 'type') else f'{outer}.{index}'
        for index, part in enumerate(parts)
    ]
    raise UserError(
        f'--cfg-options {key}',
        f'does not fit {file}, where {outer} is a list of {len(parts)}',
        ' or '.join(named) or 'an edit of the file',
    )


def _require_effect(config: Config, config_file: str, option: str) -> None:
    """Rejects an option for a variable of the file: its value has already been copied."""
    name = option.split('.')[0]
    if name in READ_KEYS or name not in config:
        return
    value = config[name]
    filled = [
        f'{section}.{key}'
        for section in config
        if section in READ_KEYS
        for key, setting in settings_of(config[section])
        if key.split('.')[-1] == name and setting == value
    ]
    example = f', such as {filled[0]},' if filled else ''
    raise UserError(
        f'--cfg-options {option}',
        f'sets a variable, which {config_file} has read already',
        f'the setting that it fills{example} or an edit of the file',
    )


def schedulers(config: Config) -> list[Any]:
    """Lists the settings of a config's schedulers, which may be one or a list."""
    return listed(config.get('param_scheduler') or None)


def move_scheduler_ends(config: Config, old_max_iters: int | None) -> None:
    """Moves the end of every scheduler that ended with the training to its new end."""
    new_max_iters = at(config, 'train_cfg.max_iters')
    for scheduler in schedulers(config):
        if scheduler.get('by_epoch', True) or old_max_iters is None:
            continue
        for key in SCHEDULER_ENDS:
            if scheduler.get(key) == old_max_iters:
                scheduler[key] = new_max_iters
