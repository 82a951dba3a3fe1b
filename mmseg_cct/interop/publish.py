"""Publication of checkpoints: weights and config for inference."""

import copy
import hashlib
from pathlib import Path
from typing import Any

from mmengine.config import Config
from torch import Tensor

from mmseg_cct.engine.checkpoints import checkpoint_bytes, is_training_only, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.interop import is_public, without_module_prefix
from mmseg_cct.utils.config_text import read_config_text
from mmseg_cct.utils.files import write_atomic

# Keys of a config for inference; the others name data and folders of the training machine.
_CONFIG_KEYS = (
    'default_scope',
    'custom_imports',
    'model',
    'test_pipeline',
    'tta_pipeline',
    'tta_model',
)
_META_KEYS = ('dataset_meta', 'epoch', 'iter', 'mmengine_version')


def publish_checkpoint(source: str, target: str, config: Config | None = None) -> Path:
    """Writes a checkpoint for inference only.

    It lacks auxiliary decoders, optimizer, schedulers, logs and the unaveraged weights that
    `EMAHook` keeps beside the averaged ones. Equal contents give equal bytes.

    Args:
        source: Checkpoint of a training, or a converted one.
        target: File to write; its name gets the first eight digits of the SHA-256 of its bytes, as
            torch.hub checks them.
        config: Config of the training; by default the one in the checkpoint, which is read and
            never run.

    Returns:
        Path of the written file.

    Raises:
        UserError: The source is no checkpoint, or one of the public code, or its config is no list
            of plain settings.
    """
    if not Path(target).name:
        raise UserError(f'{target!r}: no file name; expected the path of the file to write')
    checkpoint = read_checkpoint(source)
    try:
        if is_public(checkpoint['state_dict']):
            raise UserError(
                "has the public code's names; expected a converted checkpoint "
                '(tools/convert_checkpoint.py)'
            )
    except UserError as error:
        raise UserError(f'{source}: {error}') from None
    published = dict(
        meta=inference_meta(checkpoint.get('meta') or {}, source, config),
        state_dict=inference_weights(checkpoint['state_dict']),
    )
    data = checkpoint_bytes(published)
    digest = hashlib.sha256(data).hexdigest()[:8]
    path = Path(target)
    stem = path.name.removesuffix('.pth')
    path = path.with_name(f'{stem}-{digest}.pth')
    write_atomic(path, data)
    return path


def inference_weights(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Selects the weights of encoder and main decoder, without a wrapper's prefix `module.`."""
    # A view would be saved with its whole storage, so weights are cloned.
    return {
        name: value.detach().clone()
        for name, value in without_module_prefix(state).items()
        if not is_training_only(name)
    }


def inference_meta(
    meta: dict[str, Any], source: str = 'checkpoint', config: Config | None = None
) -> dict[str, Any]:
    """Removes the description of the training and its machine from a checkpoint's meta.

    Args:
        meta: Meta of a checkpoint.
        source: The checkpoint's name, for messages.
        config: Config of the training; by default the one in the meta.

    Returns:
        Classes, palette, versions and, if there was a config, `cfg` for inference. A `UserError`
        says where the config in the meta is no list of plain settings.
    """
    kept = {key: meta[key] for key in _META_KEYS if key in meta}
    if config is None and isinstance(meta.get('cfg'), str):
        config = read_config_text(meta['cfg'], source)
    if config is not None:
        kept['cfg'] = inference_config(config).pretty_text
    return kept


def inference_config(config: Config) -> Config:
    """Reduces a config to inference; `MMSegInferencer` runs with it.

    Args:
        config: Config of a training.

    Returns:
        Config without data sets, schedules and auxiliary decoders.
    """
    kept = {key: copy.deepcopy(config[key]) for key in _CONFIG_KEYS if config.get(key) is not None}
    for key in list(kept['model']):
        if is_training_only(key):
            kept['model'][key] = None
    _forget_initial_weights(kept['model'])
    pipeline = kept.get('test_pipeline') or config.test_dataloader.dataset.pipeline
    kept['test_pipeline'] = pipeline
    # where MMSegInferencer looks for it
    kept['test_dataloader'] = dict(dataset=dict(pipeline=copy.deepcopy(pipeline)))
    kept['visualizer'] = dict(type='SegLocalVisualizer')
    return Config(kept)


def _forget_initial_weights(config: Any) -> None:
    if isinstance(config, dict):
        if isinstance(config.get('init_cfg'), dict) and config['init_cfg'].get('checkpoint'):
            config['init_cfg'] = None
        for value in config.values():
            _forget_initial_weights(value)
