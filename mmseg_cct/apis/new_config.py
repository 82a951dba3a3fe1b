"""Writes configs for a folder of images and masks."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.registry import DefaultScope

from mmseg_cct.checks.masks import judge_labels
from mmseg_cct.checks.stages import check_config
from mmseg_cct.checks.weights import (
    prefix_of_weights,
    require_fitting_weights,
    require_weights_of_timm,
)
from mmseg_cct.config.class_names import check_classes
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, SCOPE, command_line
from mmseg_cct.datasets.folder_summary import FolderSummary, summarize_folder
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.image_lists import require_listable
from mmseg_cct.utils.suggest import nearest
from mmseg_cct.utils.text import one_line

from .config_choices import BACKBONES, RECIPES, TUNINGS, WHOLE, WITH_BANK, Backbone, Part

# One in so many labelled images validates where there is no folder for it.
HOLD_OUT = 5
_LONGEST_SIDE = 512  # pixels, where no size is chosen
_SHORTEST_CROP = 96  # pixels, where no crop is chosen


_CONFIG = """\
# {backbone} on {data}: {labeled} labelled and {unlabeled} unlabelled images, {val} to validate on.
# Written by tools/new_config.py, yours to change.
_base_ = [
{bases}
]

classes = {classes}
context_classes = {context}  # what is not an object
size = {size}  # width and height of whole images; training resizes to 0.5 to 2 times that
crop_size = {crop}  # height and width of the training crops
batch_size = {batch_size}  # pairs of a labelled and an unlabelled image
max_iters, val_interval = {iters}, {interval}

model = dict(
    data_preprocessor=dict(size=crop_size),{backbone_settings}
)
{tuning}

random_resize = dict(type='RandomResize', scale=size, ratio_range=(0.5, 2.0), keep_ratio=True)
crop = dict(type='RandomCrop', crop_size=crop_size)
flip_and_pack = [dict(type='RandomFlip', prob=0.5), dict(type='PackSegInputs')]
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    random_resize,
    dict(crop, cat_max_ratio=0.75),  # in ten draws, not of one class alone
    *flip_and_pack,
]
unlabeled_pipeline = [dict(type='LoadImageFromFile'), random_resize, crop, *flip_and_pack]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=size, keep_ratio=True),
    dict(type='LoadAnnotations'),  # after the resize: compared at the mask's own size
    dict(type='PackSegInputs'),
]
folder = dict(image_dir={images!r}, mask_dir={masks!r}{mask_suffix})
train_dataloader = dict(
    batch_size=batch_size,
    dataset=dict(
        labeled=dict(**folder{labeled_list}, pipeline=train_pipeline),
        unlabeled=dict(**folder, pipeline=unlabeled_pipeline),
    ),
)
val_dataloader = dict(
    dataset=dict(
        image_dir={val_images!r},
        mask_dir={val_masks!r}{mask_suffix},{val_list}
        pipeline=test_pipeline,
    )
)
test_dataloader = val_dataloader
train_cfg = dict(max_iters=max_iters, val_interval=val_interval)
default_hooks = dict(checkpoint=dict(interval=val_interval)){method}
"""

_BASELINE = """\
# Supervised baseline of {name}.py: the same labelled images in the same order,
# for as many iterations.
_base_ = {base!r}
model = dict(type='EncoderDecoder', auxiliary_head={heads})
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
"""

_RECIPE = """\
# {method} on the data, the network and the schedule of {cct}.py.
_base_ = {bases!r}
train_dataloader = dict(
    dataset=dict(unlabeled=dict(pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views]))
)
model = {model}
"""


class NewConfigs(NamedTuple):
    """Written configs.

    Attributes:
        summary: What the folder holds.
        files: Paths of the configs, the baseline first, the method last; between them that of CCT
            where the method builds on it.
        lists: Paths of the lists of images, where a part of the labelled ones validates.
        warnings: What is worth a second look, a line each.
        commands: What to run next.
    """

    summary: FolderSummary
    files: tuple[Path, ...]
    lists: tuple[Path, ...]
    warnings: tuple[str, ...]
    commands: tuple[str, ...]


def write_configs(
    data: str,
    out: str,
    classes: Sequence[str],
    *,
    context: Sequence[str] = (),
    backbone: str = 'mbv2',
    method: str = 'cct-strong',
    size: tuple[int, int] | None = None,
    crop: tuple[int, int] | None = None,
    iters: int = 4000,
    batch_size: int = 8,
    mask_suffix: str = '.png',
    weights: str | None = None,
    from_scratch: bool = False,
    force: bool = False,
) -> NewConfigs:
    """Looks at a folder and writes a config for it and that of its supervised baseline.

    Args:
        data: The folder, with `images`, `masks` and perhaps `val`. Without `val`, every fifth
            labelled image validates, by lists that are written beside the configs.
        out: Folder for the configs.
        classes: Class names in the order of their ids.
        context: Those that are not objects.
        backbone: A key of `BACKBONES`.
        method: One of `METHODS`.
        size: Width and height that images are resized into, for training times 0.5 to 2; by default
            their own, with a longest side of 512 at most.
        crop: Width and height of the training crops; by default `size`, for MobileNetV2 half of it.
        iters: Iterations of the training.
        batch_size: Pairs of a labelled and an unlabelled image.
        mask_suffix: End of a mask's name.
        weights: File of the backbone's weights; by default those of the model zoo.
        from_scratch: Whether to start from random weights.
        force: Whether to overwrite configs.

    Returns:
        What was written.

    Raises:
        UserError: The folder, a name, the size or the weights do not fit, or a config is there.
    """
    check_classes(classes)
    for name in context:
        if name not in classes:
            raise UserError(f'--context: no class {name!r}; {nearest(name, classes)}')
    chosen = BACKBONES[backbone]
    summary = summarize_folder(data, len(classes), mask_suffix)
    if method != 'supervised' and not summary.unlabeled:
        raise UserError(
            f'{data}/images: every image has a mask; expected images without, too, or --method '
            'supervised, or lists that leave masks out, of tools/make_splits.py'
        )
    if size is None:
        size = _default_size(summary.size, chosen.stride)
    if crop is None:
        crop = _default_crop(size, chosen)
    for option, sides in (('--size', size), ('--crop', crop)):
        _require_multiples(option, sides, chosen.stride)
    stem = f'{backbone}_{plain_name(data)}'
    whole = 'cct' if method in RECIPES else method
    name, baseline = f'{whole}_{stem}', f'supervised_{stem}'
    lists = {} if summary.validation else _hold_out(summary.labeled, out)
    contents = {}
    if method != 'supervised':
        contents[Path(out, f'{baseline}.py')] = _BASELINE.format(
            name=name, base=f'./{name}.py', heads=chosen.supervised_heads
        )
    contents[Path(out, f'{name}.py')] = _CONFIG.format(
        **_texts_of_data(Path(data), summary, list(lists)),
        **_texts_of_model(chosen, WHOLE[whole], out, weights, from_scratch),
        classes=tuple(classes),
        context=tuple(context),
        size=size,
        crop=crop[::-1],
        batch_size=batch_size,
        mask_suffix='' if mask_suffix == '.png' else f', mask_suffix={mask_suffix!r}',
        iters=iters,
        interval=max(iters // 8, 1),
    )
    if method in RECIPES:
        contents[Path(out, f'{method}_{stem}.py')] = _text_of_recipe(method, chosen, name, out)
    warnings = judge_labels(summary.labels, classes, 'masks')
    for path in (*contents, *lists):
        if path.exists() and not force:
            raise UserError(f'{path}: is there already; expected another --out, or --force')
    for path, content in {**contents, **lists}.items():
        write_atomic(path, content.encode())
    for path in contents:
        check_config(load_config(str(path), {}))
    compared = [path for path in contents if method not in RECIPES or path.stem != name]
    return NewConfigs(
        summary, tuple(contents), tuple(lists), tuple(warnings), _next_commands(compared)
    )


def plain_name(data: str) -> str:
    """Names a folder's configs: its own name, a dash for what a shell or Python would read.

    Args:
        data: The folder.

    Returns:
        The name.
    """
    return re.sub(r'[^\w.-]+', '-', Path(data).resolve().name)


def _default_size(images: tuple[int, int], stride: int) -> tuple[int, int]:
    scale = min(_LONGEST_SIDE / max(images), 1.0)
    width, height = (max(int(side * scale) // stride, 1) * stride for side in images)
    return width, height


def _default_crop(size: tuple[int, int], backbone: Backbone) -> tuple[int, int]:
    if not backbone.halves_crops or min(size) < 2 * _SHORTEST_CROP:
        return size
    width, height = (-(-side // 2 // backbone.stride) * backbone.stride for side in size)
    return width, height


def _require_multiples(option: str, sides: tuple[int, int], stride: int) -> None:
    if any(side < stride or side % stride for side in sides):
        width, height = (-(-side // stride) * stride for side in sides)
        raise UserError(
            f'{option} {sides[0]}x{sides[1]}: expected multiples of {stride}, the stride of the '
            f'network, such as {width}x{height}'
        )


def _hold_out(labeled: Sequence[str], out: str) -> dict[Path, str]:
    """Lists by path: labelled images to train on, and those to validate on."""
    if len(labeled) < 2:
        raise UserError(
            'masks: one mask, and no folder val to validate on; expected two masks or more'
        )
    require_listable(Path(out, 'labeled.txt'), labeled)
    held = labeled[::HOLD_OUT]
    kept = [name for name in labeled if name not in set(held)]
    return {
        Path(out, 'labeled.txt'): ''.join(f'{name}\n' for name in kept),
        Path(out, 'val.txt'): ''.join(f'{name}\n' for name in held),
    }


def _texts_of_data(data: Path, summary: FolderSummary, lists: Sequence[Path]) -> dict[str, str]:
    held = len(summary.labeled[::HOLD_OUT]) if lists else 0
    val = data if lists else data / 'val'
    labeled_list, val_list = (f'ann_file={str(path)!r}' for path in lists or ('', ''))
    return dict(
        data=one_line(data),
        labeled=str(len(summary.labeled) - held),
        unlabeled=str(summary.unlabeled),
        val=str(summary.validation or held),
        images=str(data / 'images'),
        masks=str(data / 'masks'),
        labeled_list=f', {labeled_list}' if lists else '',
        val_images=str(val / 'images'),
        val_masks=str(val / 'masks'),
        val_list=f'\n        {val_list},' if lists else '',
    )


def _texts_of_model(
    backbone: Backbone, method: Part, out: str, weights: str | None, from_scratch: bool
) -> dict[str, str]:
    tuning = TUNINGS['scratch' if from_scratch else backbone.tuning]
    bases = [f'models/{backbone.model}', 'datasets/folder', f'schedules/{method.base}']
    bases += [f'schedules/{tuning.base}'] if tuning.base else []
    bases.append('default_runtime')
    model = load_config(str(CONFIGS / '_base_' / f'{bases[0]}.py'), {}).model
    start = _start(model.backbone, weights, from_scratch)
    root = _base_configs(out)
    return dict(
        backbone=backbone.title,
        bases='\n'.join(f"    '{root}/{base}.py'," for base in bases),
        backbone_settings=f'\n    backbone=dict({start}),' if start else '',
        tuning=tuning.settings,
        method=method.settings.replace('{heads}', backbone.supervised_heads),
    )


def _text_of_recipe(method: str, backbone: Backbone, cct: str, out: str) -> str:
    model, has_bank = '_base_.method', method in WITH_BANK
    # a list of heads stays as it is; without the bank, MMSeg's own are left
    if not has_bank and backbone.supervised_heads != 'None':
        model = f'dict(_base_.method, auxiliary_head={backbone.supervised_heads})'
    text = _RECIPE.format(
        method=method,
        cct=cct,
        bases=[f'./{cct}.py', f'{_base_configs(out)}/methods/{method}.py'],
        model=model,
    )
    hooks = '[*_base_.custom_hooks, _base_.calibration]' if has_bank else '_base_.method_hooks'
    return f'{text}custom_hooks = {hooks}\n'


def _start(backbone: dict[str, Any], weights: str | None, from_scratch: bool) -> str:
    """What a config says of the backbone's weights; nothing where they are the model zoo's."""
    is_timm = 'pretrained' in backbone
    if from_scratch:
        if backbone.get('frozen'):
            raise UserError(
                '--from-scratch: a frozen encoder would stay random; expected --weights, or an '
                'encoder that is trained'
            )
        return 'pretrained=False' if is_timm else 'init_cfg=None'
    if weights is None:
        return ''
    if not Path(weights).is_file():
        raise UserError(f'--weights: {weights} is not a file; expected a checkpoint')
    if is_timm:
        with DefaultScope.overwrite_default_scope('mmseg'):
            require_weights_of_timm(backbone, weights, 'model.backbone')
        return f'pretrained_cfg_overlay=dict(file={weights!r})'
    with DefaultScope.overwrite_default_scope('mmseg'):
        prefix = prefix_of_weights(backbone, weights)
        require_fitting_weights(backbone, weights, prefix, 'model.backbone')
    prefixed = f'prefix={prefix!r}, ' if prefix else ''
    if not prefix and backbone['init_cfg'].get('prefix'):
        prefixed = 'prefix=None, '
    return f'init_cfg=dict({prefixed}checkpoint={weights!r})'


def _base_configs(out: str) -> str:
    """Where a config finds the base files: in its own checkout, or in the installed package."""
    configs, folder = CONFIGS.resolve(), Path(out).resolve()
    if folder.is_relative_to(configs):
        return Path(os.path.relpath(configs / '_base_', folder)).as_posix()
    return f'{SCOPE}::_base_'


def _next_commands(configs: Iterable[Path]) -> tuple[str, ...]:
    runs = [f'{path.stem.split("_")[0]}=work_dirs/{path.stem}' for path in configs]
    return (
        *(command_line('train', path) for path in configs),
        command_line('report', *runs, '--out', 'work_dirs/report'),
    )
