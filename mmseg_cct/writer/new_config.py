"""Writes the config of a folder of images and masks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmseg_cct.config.compose import merged
from mmseg_cct.config.shipped import SCOPE
from mmseg_cct.datasets.files.image_files import Dirs, training_dirs, validation_dirs, write_list
from mmseg_cct.datasets.folder_summary import describe_folder
from mmseg_cct.datasets.image_values import ImageValues
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_outside
from mmseg_cct.utils.text import one_line

from .base_model import base_model, start_settings
from .choices import BACKBONES, Choices, check_choices, plain_name
from .config_text import HOOKS, Code, assignment, installed_bases, method_parts, write_config
from .folder_classes import table_of_folder
from .folder_plan import (
    RARE_SHARE,
    Folder,
    ImageSizes,
    Plan,
    compare_masks,
    folder_warnings,
    is_best_from_preview,
    look_at,
    plan_config,
    plan_notes,
    preview_command,
)
from .next_commands import next_commands

_LOSSES_OF_RARE = dict(loss_decode=[dict(type='MeanCrossEntropy'), dict(type='BatchLovasz')])
_RARE_COMMENT = (
    f'# Some classes have below {RARE_SHARE:.0%} of the labelled pixels, which cross-entropy alone',
    '# leaves out; the Lovász loss counts each class by its IoU (docs/own_data.md)',
)


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
        UserError: The folder, a name, the size or the weights do not fit, or the config exists.
    """
    check_choices(data, choices)
    config_path = _config_path(data, out, choices)
    folder = look_at(data, choices)
    plan = plan_config(folder, config_path, choices)
    base = base_model(choices.backbone)
    start = start_settings(base.backbone, choices.weights, choices.from_scratch)
    started = None if choices.from_scratch else merged(base, dict(backbone=start))
    worth, doubts = compare_masks(folder, choices, started)
    warnings = (*folder_warnings(folder, plan), *doubts)
    parts, bases = _parts(folder, plan, choices, base, start)
    write_config(config_path, _text(folder, plan, choices, parts, bases))
    lists = tuple(_write_lists(folder, plan, choices.force))
    notes = (*plan_notes(folder, plan, choices.backbone), *worth)
    described = describe_folder(folder.summary, folder.classes, plan.held_out)
    preview = preview_command(folder, plan, choices) if worth else None
    starts_from_it = preview is not None and is_best_from_preview(folder, plan, choices)
    commands = next_commands(config_path, choices.method, preview, starts_from_it)
    return NewConfig(described, config_path, lists, notes, warnings, commands)


def _config_path(data: str, out: str, choices: Choices) -> Path:
    """Names the config, which must not exist, nor lie among the data."""
    require_outside(out, training_dirs(data), '--out')
    path = Path(out, f'{choices.method}_{choices.backbone}_{plain_name(data)}.py')
    if path.exists() and not choices.force:
        hint = 'it also trains masks that were added since, with another --work-dir of train'
        shorter = 'for fewer steps: train --cfg-options train_cfg.max_iters=N'
        raise UserError(f'{path}: exists, and {hint}; {shorter}; or another --out, or --force')
    return path


def _parts(
    folder: Folder, plan: Plan, choices: Choices, base: Any, start: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Returns what the config changes of its bases, with the method merged in, and the bases.

    `base` is the model of the bases, and `start` says where its backbone's weights come from.
    """
    backbone, values = BACKBONES[choices.backbone], folder.summary.values
    num_classes, losses = len(folder.classes), _LOSSES_OF_RARE if plan.rare else {}
    measured = dict(mean=values.mean, std=values.std) if values else {}
    model = dict(
        data_preprocessor=dict(size=Code('crop_size'), **measured),
        **_backbone(base.backbone, start, values),
        decode_head=dict(num_classes=num_classes, **losses),
        **(dict(test_cfg=plan.sizes.windows) if plan.sizes.windows else {}),
    )
    lists = dict(partly_labeled=plan.partly_list, exclude=plan.partly_list and plan.val_list)
    dataset = dict(
        labeled=_dataset('labeled', 'train_pipeline', exclude=plan.val_list),
        unlabeled=_dataset('unlabeled', 'unlabeled_pipeline', **lists),
    )
    bank = dict(num_classes=num_classes, context_classes=folder.context)
    parts = method_parts(choices.method, model, bank, dataset, base.decode_head.type)
    bank = parts['model'].pop('auxiliary_head', None)
    if bank is not None:
        del bank['type']  # that of the base
    heads = base.auxiliary_head if isinstance(base.auxiliary_head, list) else []
    parts['train_dataloader'] = dict(batch_size=plan.batch_size, **parts['train_dataloader'])
    parts['model']['auxiliary_head'] = _auxiliary_heads(heads, bank, num_classes)
    loop = 'iterations'
    if parts['default_hooks'] == HOOKS:  # those of this base
        loop = 'cct_teacher'
        del parts['default_hooks']
    if choices.from_scratch:  # the backbone learns as fast as the rest
        parts['optim_wrapper'] = dict(paramwise_cfg=None)
    schedule = 'adamw_small' if choices.from_scratch else backbone.schedule
    schedules = f'schedules/{loop}', f'schedules/{schedule}'
    return parts, [f'models/{backbone.model}', 'datasets/pairs', *schedules]


def _text(
    folder: Folder, plan: Plan, choices: Choices, parts: Mapping[str, Any], bases: Sequence[str]
) -> str:
    """Writes the config in the order in which one reads it."""
    title = BACKBONES[choices.backbone].title
    dirs, val_dirs = training_dirs(folder.data), validation_dirs(folder.data)
    dataset = dict(**_image_and_mask_dirs(dirs), classes=Code('classes'), **choices.suffixes)
    val_paths = _image_and_mask_dirs(val_dirs) if val_dirs else dict(ann_file=plan.val_list)
    val_dataset = _dataset('labeled', 'test_pipeline', **val_paths)
    has_unlabeled = 'unlabeled' in parts['train_dataloader']['dataset']
    written = 'model', 'train_dataloader'
    lines = [
        f'# {title} on {one_line(folder.data)}: written by mmseg-cct new-config, yours to change.',
        assignment('_base_', installed_bases(*(f'{SCOPE}::_base_/{base}.py' for base in bases))),
        '',
        assignment('classes', folder.classes),
        assignment('folder', dict(type='FolderDataset', **dataset)),
        *_pipeline_lines(folder.summary.values, plan.sizes, has_unlabeled),
        *(_RARE_COMMENT if plan.rare else ()),
        assignment('model', parts['model']),
        '# batch_size counts pairs of a labelled and an unlabelled image',
        assignment('train_dataloader', parts['train_dataloader']),
        assignment('auto_scale_lr', dict(base_batch_size=plan.batch_size)),
        assignment('val_dataloader', dict(dataset=val_dataset)),
        'test_dataloader = val_dataloader',
        '',
        assignment('train_cfg', dict(max_iters=plan.iters, val_interval=max(plan.iters // 8, 1))),
        assignment('param_scheduler', dict(end=plan.iters)),
        *(assignment(name, part) for name, part in parts.items() if part and name not in written),
    ]
    return ''.join(f'{line}\n' for line in lines)


def _write_lists(folder: Folder, plan: Plan, force: bool) -> Iterator[Path]:
    """Writes beside the config who validates, and beside the masks the names of the classes."""
    if plan.val_list and (force or not plan.val_list.exists()):
        write_list(plan.val_list, plan.held_out)
        yield plan.val_list
    if plan.partly_list:
        write_list(plan.partly_list, plan.partly_labeled)
        yield plan.partly_list
    if (table := table_of_folder(folder.data, folder.classes)) is not None:
        yield table


def _dataset(subset: str, pipeline: str, **paths: str | Path | None) -> Code:
    """Code of a data set in the config's `folder`, with other folders or with lists of images."""
    options = dict(subset=subset, **{key: str(path) for key, path in paths.items() if path})
    settings = [f'{key}={value!r}' for key, value in options.items()]
    return Code(f'dict(folder, {", ".join(settings)}, pipeline={pipeline})')


def _image_and_mask_dirs(dirs: Dirs) -> dict[str, str]:
    return dict(image_dir=dirs[0].as_posix(), mask_dir=dirs[1].as_posix())


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


def _auxiliary_heads(heads: Sequence[Any], bank: Mapping[str, Any] | None, num_classes: int) -> Any:
    """The auxiliary decoders, beside the heads of MMSegmentation that the base has in a list."""
    if not heads:
        return bank
    *indices, bank_index = range(len(heads))
    settings = [(index, f'num_classes={num_classes}') for index in indices]
    if bank is not None:
        bank_settings = ', '.join(f'{key}={value!r}' for key, value in bank.items())
        settings.append((bank_index, bank_settings))
    return [Code(f'dict(_base_.model.auxiliary_head[{index}], {text})') for index, text in settings]


# Steps that are written as variables of the config.
_NAMES = 'load', 'masks', 'pack', 'flip', 'crop', 'scale', 'whole'


def _pipeline_lines(
    values: ImageValues | None, sizes: ImageSizes, has_unlabeled: bool
) -> Iterator[str]:
    """Writes sizes and pipelines; MMSegmentation's loader loads the images, if it suits them."""
    if sizes.windows:
        yield '# Images keep their size, since thin objects would disappear in smaller ones:'
        yield '# training crops them, and model.test_cfg predicts windows.'
    else:
        yield f'{assignment("image_size", sizes.size)}  # width, height; training: times 0.5 to 2'
    yield f'{assignment("crop_size", sizes.crop[::-1])}  # height, width'
    yield ''
    if values is not None:
        yield f'# {values.description}; mean and std were measured'
    yield assignment('load', values.loader if values else dict(type='LoadImageFromFile'))
    yield "masks, pack = dict(type='LoadAnnotations'), dict(type='PackSegInputs')"
    load, masks, pack, flip, crop, scale, whole = map(Code, _NAMES)
    stretch = dict(ratio_range=(0.5, 2.0), keep_ratio=True)
    if sizes.windows:  # a part alone is scaled: whole images would take seconds and gigabytes
        part = sizes.crop[0] * 2, sizes.crop[1] * 2
        yield assignment('cut', dict(type='RandomCrop', crop_size=part[::-1]))
        yield assignment('scale', dict(type='RandomResize', scale=part, **stretch))
        scaled, resized = [Code('cut'), scale], []
    else:
        size = Code('image_size')
        yield assignment('scale', dict(type='RandomResize', scale=size, **stretch))
        yield assignment('whole', dict(type='Resize', scale=size, keep_ratio=True))
        scaled, resized = [scale], [whole]
    yield assignment('crop', dict(type='RandomCrop', crop_size=Code('crop_size')))
    yield assignment('flip', dict(type='RandomFlip', prob=0.5))
    # the first of ten crops in which no class fills more than three quarters
    varied = Code('dict(crop, cat_max_ratio=0.75)')
    yield assignment('train_pipeline', [load, masks, *scaled, varied, flip, pack])
    if has_unlabeled:
        yield assignment('unlabeled_pipeline', [load, *scaled, crop, flip, pack])
    # masks after the resize: the prediction is compared at the mask's own size
    yield assignment('test_pipeline', [load, *resized, masks, pack])
    yield assignment('tta_pipeline', [load, *resized, Code('_base_.tta_pipeline[1]')])
    yield ''
