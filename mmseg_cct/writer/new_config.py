"""Writes the config of a folder of images and masks."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.registry import DefaultScope

from mmseg_cct.config.compose import merged
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, SCOPE, WORK_DIRS, next_commands, next_round
from mmseg_cct.datasets.files.image_files import read_list, require_listable, write_list
from mmseg_cct.datasets.files.labels import judge_labels
from mmseg_cct.datasets.folder_summary import FolderSummary, describe_folder, summarize_folder
from mmseg_cct.datasets.hold_out import hold_out, one_sided
from mmseg_cct.datasets.image_values import ImageValues
from mmseg_cct.engine.weights import (
    prefix_of_weights,
    require_fitting_weights,
    require_weights_of_timm,
)
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_outside
from mmseg_cct.utils.text import one_line

from .backbones import BACKBONES, Backbone
from .config_text import Code, assignment, installed_bases, write_config
from .folder_classes import (
    classes_of_folder,
    context_of_classes,
    require_meant,
    require_no_masks_among,
    table_of_folder,
)
from .method_parts import method_parts
from .rounds import (
    Choices,
    changes_since,
    latest_round,
    options_line,
    plain_name,
    report_of_rounds,
    require_new_round,
)
from .small_objects import SmallObjects

_LONGEST_SIDE = 512  # pixels, if no size is chosen
_SHORTEST_CROP = 96  # pixels, if no crop is chosen
# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02
_LOSSES_OF_RARE = dict(loss_decode=[dict(type='MeanCrossEntropy'), dict(type='BatchLovasz')])


class NewConfig(NamedTuple):
    """A written config of a folder."""

    described: str  # what is in the folder
    file: Path
    lists: tuple[Path, ...]  # written beside it: images held out to validate on, table of classes
    notes: tuple[str, ...]  # what was decided
    warnings: tuple[str, ...]  # worth a second look
    commands: tuple[str, ...]  # to run next, one per line


def new_config(data: str, out: str, choices: Choices) -> NewConfig:
    """Looks at a folder, with `images`, `masks` and perhaps `val`, and writes a config into `out`.

    Without `val`, a fifth of the labelled images is held out for validation, in a list beside the
    config.

    Raises:
        UserError: The folder, a name, the size or the weights do not fit, or a file exists.
    """
    # 1. What is in the folder, before anything is decided
    require_outside(out, [Path(data, kind) for kind in ('images', 'masks')], '--out')
    classes = classes_of_folder(data, choices.classes, choices.force)
    context = context_of_classes(classes, choices.context)
    require_meant(data, classes, choices.context)
    require_no_masks_among(Path(data, 'images'), data)
    chosen, force = BACKBONES[choices.backbone], choices.force
    summary = summarize_folder(data, classes, choices.mask_suffix, choices.channels, choices.bits)
    if choices.method != 'supervised' and not summary.unlabeled:
        raise UserError(
            f'{data}/images',
            'every image has a mask',
            'some without one, or --method supervised, or lists from tools/make_splits.py '
            'that leave masks out',
        )

    # 2. The size at which the network sees it: whole images, or crops and windows of them
    values, iters = summary.values, choices.iters
    size = choices.size or _default_size(summary.size, chosen.stride)
    crop = choices.crop or _default_crop(size, chosen)
    may_crop = choices.size is None
    objects = SmallObjects(summary.widths, summary.size, size, chosen.stride, may_crop)
    if objects.in_windows:
        size = _default_size(summary.size, chosen.stride, longest=max(summary.size))
    for option, sides in (('--size', size), ('--crop', crop)):
        if any(side < chosen.stride or side % chosen.stride for side in sides):
            width, height = (max(-(-s // chosen.stride), 1) * chosen.stride for s in sides)
            expected = f'multiples of {chosen.stride}, the stride of the network, such as '
            raise UserError(f'{option} {sides[0]}x{sides[1]}', '', f'{expected}{width}x{height}')

    # 3. The file: the first of the folder, or that of the next round
    first = Path(out, f'{choices.method}_{choices.backbone}_{plain_name(data)}.py')
    latest = latest_round(first)
    # --force writes the latest round anew; later rounds keep the validation images of the first
    redraw = force and latest in (None, first)
    val_list = None if summary.validation else Path(out, 'val.txt')
    held = _held_out(summary.labels, val_list, redraw) if val_list else []
    title = _title(chosen, data, summary, len(held))
    least = RARE_SHARE * int(summary.pixels.sum())
    rare = [name for name, pixels in zip(classes, summary.pixels) if 0 < pixels < least]
    base = load_config(str(CONFIGS / '_base_/models' / f'{chosen.model}.py'), {}).model
    start = _start(base.backbone, choices.weights, choices.from_scratch)
    if latest and not force:
        require_new_round(latest, title)
    file = (latest if force else next_round(latest)) if latest else first

    # 4. What the config changes of its bases, with the method merged in
    heads = base.auxiliary_head if isinstance(base.auxiliary_head, list) else []
    model = dict(
        data_preprocessor=dict(
            size=Code('crop_size'), **(dict(mean=values.mean, std=values.std) if values else {})
        ),
        **_backbone(base.backbone, start, values),
        decode_head=dict(num_classes=len(classes), **(_LOSSES_OF_RARE if rare else {})),
        auxiliary_head=dict(num_classes=len(classes), context_classes=context),
        **(dict(test_cfg=objects.windows) if objects.in_windows else {}),
    )
    labeled, unlabeled, val = _folders(Path(data), choices.mask_suffix, val_list)
    sets = dict(labeled=labeled, unlabeled=unlabeled)
    parts = method_parts(choices.method, model, sets, base.decode_head.type)
    bank = parts['model'].pop('auxiliary_head', None)
    parts['model']['auxiliary_head'] = _auxiliary_heads(heads, bank, len(classes))
    parts['train_dataloader'] = dict(batch_size=choices.batch_size, **parts['train_dataloader'])
    if choices.from_scratch:  # the backbone learns as fast as the rest
        parts = {**parts, 'optim_wrapper': dict(paramwise_cfg=None)}
    schedule = 'adamw_small' if choices.from_scratch else chosen.schedule

    # 5. The text, in the order in which one reads a config
    lines = [
        title,
        '# Written by tools/new_config.py, yours to change.',
        options_line(choices),
        assignment('_base_', _bases(chosen.model, schedule, out)),
        '',
        assignment('classes', classes),
        *_size_lines(size, objects.in_windows),
        f'{assignment("crop_size", crop[::-1])}  # height, width',
        '',
        *_pipeline_lines(values, size, crop if objects.in_windows else None),
        *_rare_comment(rare),
        assignment('model', parts.pop('model')),
        '# batch_size counts pairs of a labelled and an unlabelled image',
        assignment('train_dataloader', parts.pop('train_dataloader')),
        assignment('auto_scale_lr', dict(base_batch_size=choices.batch_size)),
        assignment('val_dataloader', dict(dataset=val)),
        'test_dataloader = val_dataloader',
        '',
        assignment('train_cfg', dict(max_iters=iters, val_interval=max(iters // 8, 1))),
        assignment('param_scheduler', dict(end=iters)),
        *(assignment(name, value) for name, value in parts.items() if value),
    ]
    text = ''.join(f'{line}\n' for line in lines)

    # 6. Written beside it: who validates, and the names of the classes
    changes = changes_since(latest, text) if latest and file != latest else ()
    write_config(file, text)
    lists = []
    if val_list and (redraw or not val_list.exists()):
        write_list(val_list, held)
        lists.append(val_list)
    if (table := table_of_folder(data, classes)) is not None:
        lists.append(table)

    # 7. What the user should know, and run next
    warnings = [
        *changes,
        *judge_labels(Counter(summary.labels.values()), classes, 'masks'),
        *_one_sided(summary, classes, held),
        objects.warning(),
    ]
    # a second config of the same data, in another folder, has the same names
    folder = Path(out).resolve().name
    root = WORK_DIRS if folder == plain_name(data) else f'{WORK_DIRS}/{folder}'
    commands = *next_commands(file, choices.method, root), *report_of_rounds(first, file, root)
    rare_note = f'rare: {", ".join(rare)}; the config adds the Lovász loss' if rare else None
    notes = rare_note, objects.note()
    return NewConfig(
        describe_folder(summary, classes, held),
        file,
        tuple(lists),
        tuple(filter(None, notes)),
        tuple(filter(None, warnings)),
        commands,
    )


def _title(backbone: Backbone, data: str, summary: FolderSummary, held: int) -> str:
    return (
        f'# {backbone.title} on {one_line(data)}: {len(summary.labels) - held} labelled and '
        f'{summary.unlabeled} unlabelled images, {len(summary.validation) or held} to validate on.'
    )


def _bases(model: str, schedule: str, out: str) -> Any:
    """The base files: in the config's own checkout, or in the installed package."""
    parts = f'models/{model}', 'datasets/pairs', 'schedules/iterations', f'schedules/{schedule}'
    configs, folder = CONFIGS.resolve(), Path(out).resolve()
    if folder.is_relative_to(configs):
        root = Path(os.path.relpath(configs / '_base_', folder)).as_posix()
        return [f'{root}/{part}.py' for part in parts]
    return installed_bases(*(f'{SCOPE}::_base_/{part}.py' for part in parts))


def _folders(
    data: Path, mask_suffix: str, val_list: Path | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The labelled, the unlabelled and the validation set."""
    suffix = {} if mask_suffix == '.png' else dict(mask_suffix=mask_suffix)
    rest, held = {}, {}
    if val_list:  # masks that are added later are trained on, too
        rest, held = dict(exclude=str(val_list)), dict(ann_file=str(val_list))

    def folder(root: Path, subset: str, pipeline: str, **lists: str) -> dict[str, Any]:
        return dict(
            type='FolderDataset',
            image_dir=str(root / 'images'),
            mask_dir=str(root / 'masks'),
            **suffix,
            **lists,
            classes=Code('classes'),
            subset=subset,
            pipeline=Code(pipeline),
        )

    return (
        folder(data, 'labeled', 'train_pipeline', **rest),
        folder(data, 'unlabeled', 'unlabeled_pipeline'),
        folder(data if val_list else data / 'val', 'labeled', 'test_pipeline', **held),
    )


def _size_lines(size: tuple[int, int], in_windows: bool) -> Iterator[str]:
    if not in_windows:
        yield f'{assignment("image_size", size)}  # width, height; training scales it by 0.5 to 2'
    else:
        yield f'# Images of {size[0]}x{size[1]} keep their size: resized, objects would vanish.'
        yield '# model.test_cfg predicts them in windows.'


def _pipeline_lines(
    values: ImageValues | None, size: tuple[int, int], crop: tuple[int, int] | None
) -> list[str]:
    """The pipelines; images are loaded by MMSegmentation's loader, if that suits them.

    `crop` are the training crops of images that are not resized as a whole.
    """
    load, comment = dict(type='LoadImageFromFile'), []
    if values is not None:
        load = values.loader
        comment = [f'# {values.description}; mean and std were measured']
    masks, pack = [dict(type='LoadAnnotations')], dict(type='PackSegInputs')
    if values is not None and values.has_nodata:
        masks.append(dict(type='IgnoreNodata'))
    whole = [dict(type='Resize', scale=Code('image_size'), keep_ratio=True)]
    scaled = [dict(type='RandomResize', ratio_range=(0.5, 2.0), keep_ratio=True)]
    if crop is None:
        scaled[0]['scale'] = Code('image_size')
    else:  # a part alone is scaled: whole images would take seconds and gigabytes
        part = crop[0] * 2, crop[1] * 2
        whole, scaled[0]['scale'] = [], part
        scaled.insert(0, dict(type='RandomCrop', crop_size=part[::-1]))
    cut = dict(type='RandomCrop', crop_size=Code('crop_size'))
    flip = dict(type='RandomFlip', prob=0.5)
    views = [
        dict(type='Resize', keep_ratio=True, scale=tuple(int(side * scale) for side in size))
        if crop is None
        else dict(type='Resize', keep_ratio=True, scale_factor=scale)
        for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
    ]
    flips = [dict(type='RandomFlip', prob=prob) for prob in (0.0, 1.0)]
    loader = Code('load')
    pipelines = dict(
        # the first of ten crops in which no class fills more than three quarters
        train_pipeline=[loader, *masks, *scaled, dict(cut, cat_max_ratio=0.75), flip, pack],
        unlabeled_pipeline=[loader, *scaled, cut, flip, pack],
        # masks after the resize: the prediction is compared at the mask's own size
        test_pipeline=[loader, *whole, *masks, pack],
        tta_pipeline=[
            loader,
            dict(
                type='TestTimeAug', transforms=[views, flips, *([step] for step in masks), [pack]]
            ),
        ],
    )
    return [
        *comment,
        assignment('load', load),
        *(assignment(name, steps) for name, steps in pipelines.items()),
        '',
    ]


def _backbone(
    base: Mapping[str, Any], start: Mapping[str, Any], values: ImageValues | None
) -> dict[str, Any]:
    """Changes of the backbone: where its weights come from, and its number of channels."""
    channels = 3 if values is None else len(values.mean)
    if channels != 3:
        inner = merged(base, start).to_dict()
        wrapper = dict(type='MultiChannelBackbone', in_channels=channels, backbone=inner)
        return dict(backbone=dict(_delete_=True, **wrapper))
    return dict(backbone=dict(start)) if start else {}


def _rare_comment(rare: Sequence[str]) -> tuple[str, ...]:
    if not rare:
        return ()
    names = ', '.join(rare) if len(rare) < 4 else f'{len(rare)} classes'
    return (
        f'# {one_line(names)}: below {RARE_SHARE:.0%} of the labelled pixels, which cross-entropy',
        '# alone leaves out; the Lovász loss counts each class by its IoU (docs/rare_classes.md)',
    )


def _auxiliary_heads(heads: Sequence[Any], bank: Mapping[str, Any] | None, number: int) -> Any:
    """The auxiliary decoders, beside the heads of MMSegmentation that the base has in a list."""
    if not heads:
        return bank
    place = '_base_.model.auxiliary_head'
    own = [Code(f'dict({place}[{index}], num_classes={number})') for index in range(len(heads) - 1)]
    if bank is None:
        return own
    settings = ', '.join(f'{key}={value!r}' for key, value in bank.items())
    return [*own, Code(f'dict({place}[{len(heads) - 1}], {settings})')]


def _default_size(
    images: tuple[int, int], stride: int, longest: int = _LONGEST_SIDE
) -> tuple[int, int]:
    """The size of images in multiples of the stride, and of a longest side at most."""
    scale = min(longest / max(images), 1.0)
    width, height = (max(int(side * scale) // stride, 1) * stride for side in images)
    return width, height


def _default_crop(size: tuple[int, int], backbone: Backbone) -> tuple[int, int]:
    if not backbone.halves_crops or min(size) < 2 * _SHORTEST_CROP:
        return size
    width, height = (-(-side // 2 // backbone.stride) * backbone.stride for side in size)
    return width, height


def _held_out(labeled: Mapping[str, frozenset[int]], val_list: Path, redraw: bool) -> list[str]:
    """Names the labelled images to validate on: those of earlier rounds, for comparable results."""
    if len(labeled) < 2:
        raise UserError('masks', 'one mask, and no folder val to validate on', 'two masks or more')
    if redraw or not val_list.exists():
        require_listable(val_list, labeled)
        return hold_out(labeled)
    held = read_list(val_list)
    if missing := [name for name in held if name not in labeled]:
        expected = 'a list of labelled images, another --out, or no such file, so that a new list '
        raise UserError(val_list, f'{missing[0]} has no mask', f'{expected}is drawn')
    return held


def _one_sided(
    summary: FolderSummary, classes: Sequence[str], held: Sequence[str]
) -> Iterator[str]:
    """Warns of classes that are trained but not validated on, and the other way round."""
    unseen, untrained = one_sided(*(side.values() for side in summary.sides(held)))
    for ids, found in (
        (unseen, 'in no mask to validate on, so nothing tells how well it is learned'),
        (untrained, 'in masks to validate on only, so it is never learned'),
    ):
        if ids:
            names = ', '.join(classes[index] for index in sorted(ids))
            yield f'masks: {names}: {found}; expected masks of it on both sides'


def _start(backbone: Mapping[str, Any], weights: str | None, from_scratch: bool) -> dict[str, Any]:
    """Settings of the backbone that say where its weights come from, if not from the model zoo."""
    is_timm = 'pretrained' in backbone
    if weights is None and not from_scratch:
        return {}
    if weights is None:
        if backbone.get('frozen'):
            expected = '--weights, or an encoder that is trained'
            raise UserError('--from-scratch', 'a frozen encoder would stay random', expected)
        return dict(pretrained=False) if is_timm else dict(init_cfg=None)
    if not Path(weights).is_file():
        raise UserError('--weights', f'{weights} is not a file', 'a checkpoint')
    with DefaultScope.overwrite_default_scope('mmseg'):
        if is_timm:
            require_weights_of_timm(backbone, weights, 'model.backbone')
            return dict(pretrained_cfg_overlay=dict(file=weights))
        prefix = prefix_of_weights(backbone, weights)
        require_fitting_weights(backbone, weights, prefix, 'model.backbone')
    prefixed = dict(prefix=prefix or None) if prefix or backbone['init_cfg'].get('prefix') else {}
    return dict(init_cfg=dict(**prefixed, checkpoint=weights))
