"""Writes the CCT version of a config of MMSegmentation."""

import copy
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mmseg
import torch
from mmcv.transforms import Compose, LoadAnnotations
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DefaultScope
from mmseg.datasets.transforms import PackSegInputs
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.registry import DATASETS, MODELS, TRANSFORMS
from torch import Tensor, nn

from mmseg_cct.checks.stages import check_config, check_training
from mmseg_cct.config.class_names import leaf_sets
from mmseg_cct.config.load import load_config, read_config
from mmseg_cct.config.walk import forget_initial_weights, settings_of
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.image_files import find_images
from mmseg_cct.utils.suggest import close_names, nearest
from mmseg_cct.utils.text import error_line

_SIDES = (128, 512)  # pixels of the images that the dry run sees: some models need a larger one
_COARSEST = 16  # stride of a stage that is offered as z
# What BranchPreprocessor does all of.
_PREPROCESSORS = (None, 'SegDataPreProcessor', 'mmseg.SegDataPreProcessor', 'BranchPreprocessor')

_CONFIG = """\
# CCT on
#   {name},
# whose data, schedule and evaluation stay.
# Written by tools/add_cct.py, yours to change.
_base_ = {base!r}
custom_imports = dict(imports={imports}, allow_failed_imports=False)

bank = dict(
    type='PerturbedDecoderBank',
    {z},
    in_channels={channels},
    stride={stride},
    num_classes={num_classes},
    context_classes={context},  # what is not an object
    # 30 is for 21 classes and more; with fewer the loss is scaled in proportion
    loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
)
model = dict(
    type='CCTSegmentor',
    data_preprocessor=dict(type='BranchPreprocessor'),
    auxiliary_head={heads},
)

unlabeled_pipeline = [
{pipeline}
]
train_dataloader = dict(
    sampler=dict({delete}type='PairSampler', shuffle=True),
    dataset=dict(
        _delete_=True,
        type='SemiSegDataset',
        labeled=_base_.train_dataloader.dataset,
        unlabeled=dict(
            type='FolderDataset',
            image_dir={unlabeled!r},
            subset='unlabeled',
            pipeline=unlabeled_pipeline,
        ),
    ),
)
{rules}custom_hooks = [{hooks}
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,  # λ_u
        fraction=0.1,
    ),
    dict(type='TeacherHook', decay=0.99),  # the targets: its own would mislead the student
    dict(type='IterationSeedHook'),
]
"""
_RULES = """\
# supervised_heads: where CCT keeps MMSegmentation's auxiliary heads
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={rules}))
"""


class Z(NamedTuple):
    """Features that the auxiliary decoders can take.

    Attributes:
        setting: How the bank names them.
        title: What they are.
        channels: D.
        stride: Of their positions, in pixels.
    """

    setting: str
    title: str
    channels: int
    stride: int


class DryRun(NamedTuple):
    """What a model gives for a small image.

    Attributes:
        stages: Outputs of the neck, or of the backbone where there is none.
        fused: What the main head classifies, if it says so.
        num_classes: Channels of its logits.
    """

    stages: tuple[Z, ...]
    fused: Z | None
    num_classes: int


class AddedCCT(NamedTuple):
    """A written config.

    Attributes:
        file: Its path.
        choices: What was chosen, a line each.
    """

    file: Path
    choices: tuple[str, ...]


def add_cct(
    config: str,
    unlabeled: str,
    out: str,
    *,
    in_index: int | None = None,
    context: Sequence[str] | None = None,
    force: bool = False,
) -> AddedCCT:
    """Writes the CCT version of a config.

    Args:
        config: A config of MMSegmentation, as a path or by its name.
        unlabeled: Folder of the unlabelled images.
        out: File to write.
        in_index: Stage of the backbone to take as z; by default z is what the main head has fused
            or, where that is coarser than stride 16, the deepest stage that is not.
        context: Classes that are no objects; by default `background`, if there is such a class.
        force: Whether to overwrite the file.

    Returns:
        What was written and chosen.

    Raises:
        UserError: There is no such config, its model or data are none that CCT can train on, a
            name or the folder does not fit, or the file is there.
    """
    target = Path(out)
    if target.suffix != '.py':
        raise UserError(f'--out {out}: expected the name of a config, such as {target.stem}.py')
    if target.exists() and not force:
        raise UserError(f'{out}: is there already; expected another --out, or --force')
    found = find_images(unlabeled)
    image = str(next(iter(found.values())))
    path, base = _find(config, target)
    if path.resolve() == target.resolve():
        raise UserError(f'--out {out}: is the config itself; expected another name')
    _require_a_head_of_pixels(path)
    settings = load_config(str(path), {})
    _require_plain(settings, config)
    check_config(settings)
    classes = _classes(settings)
    if context is None:
        context = [name for name in classes if name == 'background']
    for name in context:
        if name not in classes:
            raise UserError(f'--context: no class {name!r}; {nearest(name, classes)}')
    with DefaultScope.overwrite_default_scope('mmseg'), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # what MMSeg says of losses that nothing computes here
        dry_run = try_model(settings.model)
        labeled = _labeled_pipeline(settings.train_dataloader.dataset)
        pipeline = _unlabeled_pipeline(labeled, marks=False)
        _try_pipeline(pipeline, image)  # with marks it would run where a mask is needed, too
        if any(TRANSFORMS.get(each['type']) is PackSegInputs for each in labeled):
            pipeline = _unlabeled_pipeline(labeled, marks=True)
        mixing = [each['type'] for each in labeled if _mixes(each)]
    z = _choose(dry_run, in_index)
    rules = _rules_of_heads(settings)
    text = _CONFIG.format(
        name=path.name,
        base=base,
        imports=_imports(settings),
        z=z.setting,
        channels=z.channels,
        stride=z.stride,
        num_classes=dry_run.num_classes,
        context=tuple(context),
        delete='_delete_=True, ' if settings.train_dataloader.get('sampler') else '',
        heads=_heads(settings.model),
        pipeline='\n'.join(f'    {_literal(transform)},' for transform in pipeline),
        unlabeled=unlabeled,
        rules=_RULES.format(rules=_literal(rules)) if rules else '',
        hooks='\n    *_base_.custom_hooks,' if settings.get('custom_hooks') else '',
    )
    _require_trainable(text, target)
    write_atomic(target, text.encode())
    return AddedCCT(
        target,
        (
            f'z: {z.title}, {z.channels} channels at stride {z.stride}',
            *(f'   or {other.title}: {other.channels} channels at stride {other.stride}, '
              f'--in-index {index}' for index, other in _offered(dry_run) if other != z),
            f'classes: {dry_run.num_classes}; context (not objects): {", ".join(context) or "none"}'
            f'{"" if context else ", see --context"}',
            f'unlabelled: {len(found)} images of {unlabeled}, augmented as the labelled ones'
            f'{", without " + ", ".join(mixing) if mixing else ""}',
            *((f'learning rates: auxiliary_head names the auxiliary decoders now; your heads keep '
               f'its rules, as {", ".join(rules)}',) if rules else ()),
        ),
    )  # fmt: skip


def try_model(model: Mapping[str, Any]) -> DryRun:
    """Runs a model of MMSegmentation on a small image, without its weights.

    Args:
        model: Its config.

    Returns:
        What it gives.

    Raises:
        UserError: It does not run, gives no map of logits, or has other features in training.
    """
    settings: Any = copy.deepcopy(model)
    forget_initial_weights(settings)
    own = settings.backbone.get('img_size')  # of transformers that take no other
    own = own[0] if isinstance(own, (list, tuple)) else own
    sides = dict.fromkeys([_SIDES[0], *([own] if own else []), *_SIDES[1:]])
    refusals: list[Exception] = []
    for side in sides:
        try:
            return _try_on(settings, side)
        except UserError:
            raise
        except Exception as error:  # whatever a model raises that this image does not suit
            refusals.append(error)
    images = ' or '.join(f'{side}×{side}' for side in sides)
    raise UserError(
        f'model: does not run on an image of {images} ({error_line(refusals[0], 160)}); '
        'expected a model of one main head on feature maps'
    ) from refusals[0]


def _try_on(settings: Mapping[str, Any], side: int) -> DryRun:
    """Runs a model on an image of `side` × `side` pixels."""
    built = revert_sync_batchnorm(MODELS.build(copy.deepcopy(settings))).eval()
    head = built.decode_head
    inputs: list[Tensor] = []
    if (layer := getattr(head, 'conv_seg', None)) is not None:
        layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with torch.no_grad():
        features = built.extract_feat(torch.zeros(1, 3, side, side))
        logits = head.forward(features)
        in_training = built.train().extract_feat(torch.zeros(2, 3, side, side))
    if not isinstance(logits, Tensor) or logits.ndim != 4:
        raise UserError(
            f'model.decode_head: {type(head).__name__} gives no map of logits; '
            'expected a head that does'
        )
    if logits.shape[1] < 2:
        raise UserError(
            'model.decode_head.out_channels=1: expected one output for each class, out_channels=2'
        )
    if _shapes(in_training) != _shapes(features):
        raise UserError(
            f'model.backbone: {type(built.backbone).__name__} gives other features in training '
            'than at inference; expected a model that predicts from the same'
        )
    features = [features] if isinstance(features, Tensor) else features
    stages = (
        _z(f'in_index={index}', f'output {index} of {_encoder(built)}', each, side)
        for index, each in enumerate(features)
    )
    fused = None
    if inputs:
        title = f'what {type(head).__name__} has fused (the input of conv_seg)'
        fused = _z("in_layer='conv_seg'", title, inputs[-1], side)
    return DryRun(tuple(stages), fused, logits.shape[1])


def _shapes(features: Any) -> Any:
    """Shapes of features without that of the batch, in the nesting that they have."""
    if isinstance(features, Tensor):
        return features.shape[1:]
    return [_shapes(each) for each in features]


def _encoder(model: nn.Module) -> str:
    part = model.neck if model.with_neck else model.backbone
    return type(part).__name__


def _z(setting: str, title: str, features: Any, side: int) -> Z:
    """Describes features; of stride 0 where they are no map whose stride is a power of two."""
    if not isinstance(features, Tensor) or features.ndim != 4:
        return Z(setting, title, 0, 0)
    height, width = features.shape[-2:]
    stride = side // height
    fits = height == width and stride * height == side and not stride & (stride - 1)
    return Z(setting, title, features.shape[1], stride if fits else 0)


def _offered(dry_run: DryRun) -> list[tuple[int, Z]]:
    return [(i, stage) for i, stage in enumerate(dry_run.stages) if 0 < stage.stride <= _COARSEST]


def _choose(dry_run: DryRun, in_index: int | None) -> Z:
    if in_index is not None:
        count = len(dry_run.stages)
        if not 0 <= in_index < count:
            raise UserError(f'--in-index {in_index}: expected 0 to {count - 1}')
        if not dry_run.stages[in_index].stride:
            raise UserError(
                f'--in-index {in_index}: no map whose stride is a power of two; expected another'
            )
        return dry_run.stages[in_index]
    offered = [stage for _, stage in _offered(dry_run)]
    if dry_run.fused is not None and dry_run.fused.stride:
        # coarse features come last: a position would stand for 1024 pixels
        offered.insert(len(offered) if dry_run.fused.stride <= _COARSEST else 0, dry_run.fused)
    if not offered:
        raise UserError(
            'model: neither the input of conv_seg nor a stage of the backbone is a map at stride 1 '
            f'to {_COARSEST}, a power of two; expected one that the auxiliary decoders can take'
        )
    return offered[-1]


def _find(name: str, target: Path) -> tuple[Path, str]:
    """The config's path, and how a config in another folder names it."""
    if Path(name).is_file():
        folder = target.resolve().parent
        return Path(name), Path(os.path.relpath(Path(name).resolve(), folder)).as_posix()
    root = Path(mmseg.__file__).parent / '.mim' / 'configs'
    short = name.removeprefix('mmseg::').removesuffix('.py')
    known = {path.stem: path for path in root.glob('*/*.py')}
    path = root / f'{short}.py'
    if not path.is_file():
        path = known.get(short, path)
    if not path.is_file():
        close = close_names(short.rpartition('/')[2], list(known), cutoff=0.7)
        hint = f'; did you mean {" or ".join(close)}?' if close else ''
        raise UserError(f'{name}: no such file, and no config of MMSegmentation{hint}')
    return path, f'mmseg::{path.relative_to(root).as_posix()}'


def _require_a_head_of_pixels(path: Path) -> None:
    """Refuses heads that classify masks, before the packages that these need are imported."""
    model = read_config(path, import_custom_modules=False).get('model') or {}
    head = model.get('decode_head')
    name = head.get('type') if isinstance(head, Mapping) else None
    kind = MODELS.get(name) if isinstance(name, str) else None
    if isinstance(kind, type) and not issubclass(kind, BaseDecodeHead):
        raise UserError(
            f'model.decode_head.type={name!r}: classifies masks or images, not pixels; expected a '
            'head that gives a map of logits'
        )


def _require_trainable(text: str, target: Path) -> None:
    """Checks the text of a config in the folder of its file, which its base is relative to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix='.', suffix='.py') as part:
        part.write(text.encode())
        part.flush()
        try:
            config = load_config(part.name, {})
        except UserError as error:
            raise UserError(str(error).replace(part.name, str(target))) from error
    check_training(config)


def _require_plain(config: Config, name: str) -> None:
    for key, value in settings_of(config):
        if key.endswith('.type') and callable(value):
            raise UserError(f'{name}: {key} is {value!r}; expected names as types, no classes')
    model = config.get('model') or {}
    if model.get('type') not in ('EncoderDecoder', 'mmseg.EncoderDecoder'):
        raise UserError(
            f'{name}: model.type={model.get("type")!r}; expected EncoderDecoder, which CCT extends'
        )
    for part in ('backbone', 'decode_head'):
        if not model.get(part):
            raise UserError(f'{name}: no model.{part}; expected that of an EncoderDecoder')
    preprocessor = (model.get('data_preprocessor') or {}).get('type')
    if preprocessor not in _PREPROCESSORS:
        raise UserError(
            f'{name}: model.data_preprocessor.type={preprocessor!r}; expected SegDataPreProcessor, '
            'which CCT extends'
        )
    for key in ('train_cfg', 'optim_wrapper'):
        if config.get(key) is None:
            raise UserError(f'{name}: no {key}; expected a config for training')
    dataset = (config.get('train_dataloader') or {}).get('dataset')
    if not dataset:
        raise UserError(f'{name}: no train_dataloader.dataset; expected a config for training')
    if 'labeled' in dataset:
        raise UserError(
            f'{name}: train_dataloader.dataset has a labelled set in it; expected that set alone'
        )


def _classes(config: Config) -> tuple[str, ...]:
    dataset = next(leaf_sets(config.train_dataloader.dataset))[1]
    if 'type' not in dataset:
        raise UserError(
            'train_dataloader.dataset: a set without type; expected the name of a data set'
        )
    own = dataset.get('classes') or (dataset.get('metainfo') or {}).get('classes')
    with DefaultScope.overwrite_default_scope('mmseg'):
        kind = DATASETS.get(dataset['type'])
    return tuple(own or getattr(kind, 'METAINFO', {}).get('classes') or ())


def _labeled_pipeline(dataset: Any) -> list[Any]:
    """Transforms of the first set, then those of the wrappers around it."""
    if isinstance(dataset, Sequence):
        return _labeled_pipeline(dataset[0])
    inner = dataset.get('dataset') or dataset.get('datasets')
    return [*(_labeled_pipeline(inner) if inner else ()), *(dataset.get('pipeline') or ())]


def _mixes(transform: Mapping[str, Any]) -> bool:
    """Whether it takes further images of the labelled set."""
    return hasattr(TRANSFORMS.get(transform['type']), 'get_indices')


def _unlabeled_pipeline(labeled: Sequence[Any], marks: bool) -> list[Any]:
    """The transforms that need no masks; marks of the filled pixels take the place of the mask."""
    kept: list[Any] = []
    for transform in labeled:
        if not isinstance(transform, Mapping):  # one of the lists of RandomChoice
            kept.append(_unlabeled_pipeline(transform, marks))
            continue
        kind = TRANSFORMS.get(transform['type'])
        loads = isinstance(kind, type) and issubclass(kind, LoadAnnotations)
        if _mixes(transform) or (loads and not marks):
            continue
        transform = dict(type='MarkValidPixels') if loads else dict(transform)
        transform.pop('_scope_', None)
        if kind is PackSegInputs and marks:
            transform['type'] = 'PackUnlabeledInputs'
        if transform.get('cat_max_ratio', 1.0) < 1.0:
            transform['cat_max_ratio'] = 1.0
        if inner := transform.get('transforms'):  # of RandomApply, RandomChoice and their like
            inner = [inner] if isinstance(inner, Mapping) else inner
            transform['transforms'] = _unlabeled_pipeline(inner, marks)
        kept.append(transform)
    return kept


def _try_pipeline(pipeline: Sequence[Mapping[str, Any]], image: str) -> None:
    sample = dict(img_path=image, seg_fields=[], reduce_zero_label=False)
    key = 'train_dataloader.dataset.pipeline'
    try:
        result = Compose([TRANSFORMS.build(dict(transform)) for transform in pipeline])(sample)
    except Exception as error:  # whatever a transform raises that finds no mask
        raise UserError(
            f'{key}: does not run on {image} without a mask ({error_line(error, 160)}); expected '
            'transforms that need none'
        ) from error
    if 'inputs' not in (result or ()):
        raise UserError(f'{key}: gives no inputs; expected PackSegInputs at its end')


def _rules_of_heads(config: Config) -> dict[str, Any]:
    """The optimizer's rules for auxiliary heads of MMSegmentation, by what names these in CCT."""
    heads = config.model.get('auxiliary_head')
    own = 'supervised_heads' if isinstance(heads, Sequence) else 'supervised_heads.0'
    rules = (config.optim_wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    return {
        key.replace('auxiliary_head', own): rule
        for key, rule in rules.items()
        if heads and 'auxiliary_head' in key
    }


def _imports(config: Config) -> list[str]:
    imports = (config.get('custom_imports') or {}).get('imports') or []
    imports = [imports] if isinstance(imports, str) else list(imports)
    return [*imports, *({'mmseg_cct.plugin'} - set(imports))]


def _heads(model: Mapping[str, Any]) -> str:
    heads = model.get('auxiliary_head')
    if heads:
        several = '*' if isinstance(heads, (list, tuple)) else ''
        return f'[{several}_base_.model.auxiliary_head, bank]'
    # None and an empty list cannot be inherited from
    return 'dict(bank, _delete_=True)' if 'auxiliary_head' in model else 'bank'


def _literal(value: Any) -> str:
    """Writes a setting as configs do, `dict(key=value)`."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key.isidentifier() for key in value):
            return f'dict({", ".join(f"{key}={_literal(item)}" for key, item in value.items())})'
        return f'{{{", ".join(f"{key!r}: {_literal(item)}" for key, item in value.items())}}}'
    if isinstance(value, list):
        return f'[{", ".join(map(_literal, value))}]'
    if isinstance(value, tuple):
        return f'({", ".join(map(_literal, value))}{"," if len(value) == 1 else ""})'
    return repr(value)
