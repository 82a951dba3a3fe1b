"""Publication of a trained network: weights and config for inference."""

import copy
import hashlib
import inspect
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmseg.models import CascadeEncoderDecoder, EncoderDecoder
from mmseg.registry import MODELS

from mmseg_cct.config.domains import pipeline_for_tests
from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.engine.checkpoints import checkpoint_bytes
from mmseg_cct.engine.prediction import predicts_as_encoder_decoder
from mmseg_cct.engine.weights import is_training_only, weights
from mmseg_cct.utils.files import output_file, write_atomic

from .run import Run

# Keys of a config for inference; the others name data and folders of the training machine.
_CONFIG_KEYS = (
    *('default_scope', 'custom_imports', 'model'),
    *('test_pipeline', 'tta_pipeline', 'tta_model'),
)
# The rest of mmengine's meta names the machine, its user and the time.
_META_KEYS = ('dataset_meta', 'epoch', 'iter', 'mmengine_version')


def publish(run: Run, target: str, overwrite: bool = False, half: bool = False) -> Run:
    """Writes a checkpoint for inference only, as an `EncoderDecoder` of MMSegmentation.

    It lacks auxiliary decoders, optimizer, schedulers, logs and the unaveraged weights that
    `EMAHook` keeps beside the averaged ones. Equal contents give equal bytes. The file's name is
    that of `target` with the first eight digits of the SHA-256 of its bytes, as torch.hub checks
    them. `MMSegInferencer(None, FILE)` finds the config in it.

    With `half`, kernels and matrices are kept in float16, for half the size; loading copies them
    into a network's own float32. Returns the published network.

    Raises:
        UserError: The checkpoint does not fit the config, or the file exists with other contents.
    """
    # MMSegInferencer would predict with random weights where some are missing
    run.load_model('cpu')
    segmentor = _segmentor(run.config)
    saved = weights(run.content)
    names = [name for name in saved if not is_training_only(name, segmentor)]
    # A view would be saved with its whole storage, so weights are cloned.
    state = {name: saved[name].detach().clone() for name in names}
    if half:
        # norms stay: a running variance may exceed float16's range, and they are small
        for name, value in state.items():
            if value.is_floating_point() and value.dim() > 1:
                state[name] = value.half()
    config = inference_config(run.config)
    meta = {key: value for key, value in run.content.get('meta', {}).items() if key in _META_KEYS}
    data = checkpoint_bytes(dict(meta={**meta, 'cfg': config.pretty_text}, state_dict=state))
    digest = hashlib.sha256(data).hexdigest()[:8]
    path = Path(f'{str(Path(target)).removesuffix(".pth")}-{digest}.pth').absolute()
    if not (path.is_file() and path.read_bytes() == data):
        output_file(path, [run.checkpoint], overwrite=overwrite, option='OUT')
        write_atomic(path, data)
    return Run(config, str(path), run.name)


def _segmentor(config: Config) -> Any:
    segmentor = config.model.type
    return MODELS.get(segmentor) if isinstance(segmentor, str) else segmentor


def inference_config(config: Config) -> Config:
    """Reduces a config to inference; `MMSegInferencer` runs with it.

    It has no data sets, schedules or parts for the training. Its model is MMSegmentation's
    `EncoderDecoder`, unless the segmentor predicts in a way of its own.
    """
    kept = {key: copy.deepcopy(config[key]) for key in _CONFIG_KEYS if config.get(key) is not None}
    model, segmentor = kept['model'], _segmentor(config)
    methods = ('extract_feat', 'encode_decode', 'predict', 'postprocess_result')
    if predicts_as_encoder_decoder(segmentor, *methods):
        cascade = isinstance(model['decode_head'], (list, tuple))
        plain = CascadeEncoderDecoder if cascade else EncoderDecoder
        known = inspect.signature(plain).parameters
        model = {key: value for key, value in model.items() if key in known}
        model['type'] = plain.__name__
        if cascade:
            model['num_stages'] = len(model['decode_head'])
    kept['model'] = {k: None if is_training_only(k, segmentor) else v for k, v in model.items()}
    forget_initial_weights(kept['model'])
    # MMSegInferencer looks for the transform that loads files, where the demo draws scenes
    load = dict(type='LoadImageFromFile')
    pipeline = copy.deepcopy(pipeline_for_tests(config))
    kept['test_pipeline'] = [load if s['type'] == 'DrawShapesScene' else s for s in pipeline]
    kept['test_dataloader'] = dict(dataset=dict(pipeline=copy.deepcopy(kept['test_pipeline'])))
    kept['visualizer'] = dict(type='SegLocalVisualizer')
    return Config(kept)
