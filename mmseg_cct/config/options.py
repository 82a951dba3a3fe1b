"""Finds options that have no effect, because the config file has already read the variable."""

import inspect

from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.config.walk import settings_of
from mmseg_cct.errors import UserError

# Top-level keys of a config that a program reads.
READ_KEYS = {
    *(inspect.signature(Runner.__init__).parameters.keys() - {'self', 'cfg'}),
    # what mmengine's runners read besides their arguments
    *('runner_type', 'model_wrapper_cfg', 'find_unused_parameters', 'sync_bn', 'compile'),
    *('activation_checkpointing', 'efficient_conv_bn_eval', 'strategy'),
    'init_weights_for_test_or_val',
    # what this package and MMSeg read
    *(
        'test_pipeline',
        'tta_model',
        'tta_pipeline',
        'pseudo_labels',
    ),
}


def require_effect(config: Config, config_file: str, option: str) -> None:
    """Rejects an option for a variable of the file: its value has already been copied.

    An option whose first part is new is left to other checks.
    """
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
