"""Publication of checkpoints: weights and config for inference."""

import copy
import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.config.domains import domain_settings, pipeline_for_tests, require_domain
from mmseg_cct.config.walk import at, forget_initial_weights
from mmseg_cct.engine.checkpoints import checkpoint_bytes, read_checkpoint
from mmseg_cct.engine.foreign_config import saved_config
from mmseg_cct.engine.prediction import predicts_as_encoder_decoder
from mmseg_cct.engine.weights import is_training_only, weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import output_file, write_atomic

from .convert import is_public

# Keys of a config for inference; the others name data and folders of the training machine.
_CONFIG_KEYS = (
    *('default_scope', 'custom_imports', 'model'),
    *('test_pipeline', 'tta_pipeline', 'tta_model'),
)
_META_KEYS = ('dataset_meta', 'epoch', 'iter', 'mmengine_version')


def publish_checkpoint(
    source: str,
    target: str,
    config: Config | None = None,
    domain: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a checkpoint for inference only, as an `EncoderDecoder` of MMSegmentation.

    It lacks auxiliary decoders, optimizer, schedulers, logs and the unaveraged weights that
    `EMAHook` keeps beside the averaged ones. Equal contents give equal bytes. The file's name is
    that of `target` with the first eight digits of the SHA-256 of its bytes, as torch.hub checks
    them. Without a `config`, the one in the checkpoint is read and never run.

    Raises:
        UserError: If the source is no such checkpoint, its config is no list of plain settings, the
            domain is unknown, or the file exists with other contents.
    """
    if not Path(target).name:
        raise UserError(f'{target!r}', 'no file name', 'the path of the file to write')
    checkpoint = read_checkpoint(source)
    config = config or saved_config(checkpoint, source)
    segmentor = None if config is None else _segmentor(config)
    try:
        if is_public(checkpoint['state_dict']):
            raise UserError(
                "has the public code's names; expected a converted checkpoint "
                '(tools/convert_checkpoint.py)'
            )
        state = _weights(checkpoint['state_dict'], domain, segmentor)
    except UserError as error:
        raise UserError(source, error) from None
    meta = _meta(checkpoint.get('meta') or {}, config, domain)
    data = checkpoint_bytes(dict(meta=meta, state_dict=state))
    digest = hashlib.sha256(data).hexdigest()[:8]
    path = Path(target)
    path = path.with_name(f'{path.name.removesuffix(".pth")}-{digest}.pth')
    if not (path.is_file() and path.read_bytes() == data):
        output_file(path, [source], overwrite=overwrite, option='OUT')
        write_atomic(path, data)
    return path


def _segmentor(config: Config) -> type | None:
    kind = at(config, 'model.type')
    return MODELS.get(kind) if isinstance(kind, str) else kind


def _weights(
    state: dict[str, Tensor], domain: str | None, segmentor: type | None
) -> dict[str, Tensor]:
    """Copies the weights of encoder and main decoder, without a wrapper's prefix `module.`."""
    state = weights(state)
    domains: list[Any] = sorted({n.split('.')[1] for n in state if n.startswith('domains.')})
    if domain not in (domains or [None]):
        expected = f'one of {", ".join(domains)}' if domains else 'none, the model has no domains'
        raise UserError(f'--domain {domain or "is missing"}', '', expected)
    own = f'domains.{domain}.'
    # A view would be saved with its whole storage, so weights are cloned.
    return {
        name.removeprefix(own): value.detach().clone()
        for name, value in state.items()
        if name.startswith(own) or not name.startswith('domains.')
        if not is_training_only(name, segmentor)
    }


def _meta(meta: dict[str, Any], config: Config | None, domain: str | None) -> dict[str, Any]:
    """Removes the description of the training and its machine from a checkpoint's meta.

    With a config, `cfg` is that for inference.
    """
    kept = {key: meta[key] for key in _META_KEYS if key in meta}
    if domain is not None:
        kept['dataset_meta'] = (kept.get('dataset_meta') or {}).get('domains', {}).get(domain, {})
    if config is not None:
        if at(config, 'model.type') is None:
            raise UserError(config.filename or 'the config', 'no model', 'the config of a training')
        kept['cfg'] = _config(config, domain).pretty_text
    return kept


def _config(config: Config, domain: str | None) -> Config:
    """Reduces a config to inference; `MMSegInferencer` runs with it.

    It has no data sets, schedules or parts for the training. Its model is MMSegmentation's
    `EncoderDecoder`, unless the segmentor predicts in a way of its own.
    """
    require_domain(config, domain)
    kept = {key: copy.deepcopy(config[key]) for key in _CONFIG_KEYS if config.get(key) is not None}
    pipeline = kept.get('test_pipeline')
    if domain is not None:
        model = kept['model']
        model.update(domain_settings(model, model['domains'][domain], domain))
        pipeline = pipeline_for_tests(config, domain)
        tta = kept.pop('tta_pipeline', None)
        if isinstance(tta, dict) and domain in tta:
            kept['tta_pipeline'] = tta[domain]
    kind = _segmentor(config)
    own = ('extract_feat', 'encode_decode', 'predict', 'postprocess_result')
    if domain is not None or predicts_as_encoder_decoder(kind, *own):
        known = inspect.signature(EncoderDecoder).parameters
        plain = {key: value for key, value in kept['model'].items() if key in known}
        kept['model'] = dict(plain, type='EncoderDecoder')
    for key in kept['model']:
        if is_training_only(key, kind):
            kept['model'][key] = None
    forget_initial_weights(kept['model'])
    kept['test_pipeline'] = _from_files(pipeline or pipeline_for_tests(config))
    # MMSegInferencer looks for the pipeline here
    dataset = dict(pipeline=copy.deepcopy(kept['test_pipeline']))
    kept['test_dataloader'] = dict(dataset=dataset)
    kept['visualizer'] = dict(type='SegLocalVisualizer')
    return Config(kept)


def _from_files(pipeline: Sequence[Any]) -> list[Any]:
    """Loads files instead of drawing scenes: MMSegInferencer looks for that transform."""
    drawn, load = 'DrawShapesScene', dict(type='LoadImageFromFile')
    return [load if step.get('type') == drawn else step for step in pipeline]
