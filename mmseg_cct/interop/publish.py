"""Publishes a checkpoint: the weights of inference and the config that goes with them."""

import copy
import hashlib
from pathlib import Path
from typing import Any

from mmengine.config import Config
from torch import Tensor

from mmseg_cct.engine.checkpoints import checkpoint_bytes, is_training_only, read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.interop import is_public, without_module_prefix
from mmseg_cct.utils.files import write_atomic

# What of a config inference needs; the rest names the data and folders of the training machine.
_CONFIG_KEYS = (
    'default_scope',
    'custom_imports',
    'model',
    'test_pipeline',
    'tta_pipeline',
    'tta_model',
)
_META_KEYS = ('dataset_meta', 'epoch', 'iter', 'mmengine_version')


def publish_checkpoint(source: str, target: str) -> Path:
    """Writes a checkpoint without what only training needs.

    Auxiliary decoders, optimizer, schedulers, logs and the weights that `EMAHook` keeps aside are
    left out (the average itself is what it saves as the model's weights). Equal contents give
    equal bytes.

    Args:
        source: A checkpoint of a training, or a converted one.
        target: File to write; the first eight digits of the SHA-256 of its bytes are added to the
            name, as torch.hub checks them.

    Returns:
        The file written.

    Raises:
        UserError: The source is no checkpoint, or one of the public code.
    """
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
        meta=inference_meta(checkpoint.get('meta') or {}),
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
    """Leaves out the modules that do not run at inference.

    Args:
        state: Weights of a model.

    Returns:
        Those of encoder and main decoder, without a wrapper's `module.` before the names.
    """
    # `clone`: a tensor that is part of a larger storage would be saved with all of it
    return {
        name: value.detach().clone()
        for name, value in without_module_prefix(state).items()
        if not is_training_only(name)
    }


def inference_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what describes the training and its machine.

    Args:
        meta: Of the checkpoint of a training.

    Returns:
        Classes and palette, versions, and `cfg`, a config for inference, where there was one.
    """
    kept = {key: meta[key] for key in _META_KEYS if key in meta}
    if isinstance(meta.get('cfg'), str):
        kept['cfg'] = inference_config(Config.fromstring(meta['cfg'], '.py')).pretty_text
    return kept


def inference_config(config: Config) -> Config:
    """The part of a config that inference needs; with it `MMSegInferencer` needs no other.

    Args:
        config: The config of a training.

    Returns:
        A config without data sets, schedules and auxiliary decoders.
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
