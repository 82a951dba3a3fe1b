"""Writes the config of a folder of images and masks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmengine.registry import DefaultScope

from mmseg_cct.config.compose import merged
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import SCOPE
from mmseg_cct.datasets.files.image_files import (
    describe_left_out,
    find_images,
    find_masks,
    read_list,
    write_list,
)
from mmseg_cct.datasets.files.labels import judge_labels
from mmseg_cct.datasets.files.layouts import (
    VAL_LIST,
    Dirs,
    is_validation,
    training_dirs,
    validation_dirs,
)
from mmseg_cct.datasets.folder_summary import FolderSummary, describe_folder, summarize_folder
from mmseg_cct.datasets.hold_out import hold_out, one_sided
from mmseg_cct.datasets.image_values import ImageValues
from mmseg_cct.engine.doubtful_masks import FEWEST, contradictions, judge_masks
from mmseg_cct.engine.frozen_features import load_encoder
from mmseg_cct.engine.weights import require_fitting_weights, require_weights_of_timm
from mmseg_cct.errors import UserError
from mmseg_cct.utils.command_line import command_line
from mmseg_cct.utils.files import require_outside
from mmseg_cct.utils.text import counted, one_line

from .backbones import BACKBONES
from .choices import PRESETS, Choices, check_choices, plain_name
from .config_text import Code, assignment, installed_bases, write_config
from .folder_classes import (
    classes_of_folder,
    context_of_classes,
    reject_void_names,
    table_of_folder,
)
from .image_sizes import ImageSizes, choose_sizes
from .method_parts import HOOKS, method_parts
from .next_commands import next_commands
from .pipeline_lines import pipeline_lines

# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02
# Masks to compare with one another; of more, the tool that does only that takes minutes.
_MOST_JUDGED = 100
_LOSSES_OF_RARE = dict(loss_decode=[dict(type='MeanCrossEntropy'), dict(type='BatchLovasz')])
_RARE_COMMENT = (
    f'# Some classes have below {RARE_SHARE:.0%} of the labelled pixels, which cross-entropy alone',
    '# leaves out; the Lovász loss counts each class by its IoU (docs/rare_classes.md)',
)


class NewConfig(NamedTuple):
    """A written config of a folder."""

    described: str  # what is in the folder
    file: Path
    lists: tuple[Path, ...]  # written beside it: images held out to validate on, table of classes
    notes: tuple[str, ...]  # what was decided
    warnings: tuple[str, ...]  # worth a second look
    commands: tuple[str, ...]  # to run next, one per line


class _Folder(NamedTuple):
    """What is in a folder."""

    data: str
    classes: tuple[str, ...]
    context: tuple[str, ...]  # classes that are not objects
    summary: FolderSummary
    left_out: list[str]  # files in `images` that are no images


class _Plan(NamedTuple):
    """What follows from the folder, where the user has not chosen."""

    sizes: ImageSizes
    iters: int
    batch_size: int
    val_list: Path | None  # the images to validate on; None if there is a folder `val`
    held_out: list[str]  # their names
    partly_labeled: list[str]  # names of images that are trained both with and without labels
    partly_list: Path | None  # of these
    rare: list[str]  # classes with a small share of the labelled pixels


def new_config(data: str, out: str, choices: Choices) -> NewConfig:
    """Looks at a folder, with `images`, `masks` and perhaps `val`, and writes a config into `out`.

    Without `val`, a fifth of the labelled images is held out for validation, in a list beside the
    config.

    Raises:
        UserError: The folder, a name, the size or the weights do not fit, or the config exists.
    """
    check_choices(data, choices)
    config_path = _config_path(data, out, choices)
    folder = _look_at(data, choices)
    plan = _plan(folder, config_path, choices)
    warnings = (*_warnings(folder, plan), *_doubts(folder, choices))
    parts, bases = _parts(folder, plan, choices)
    write_config(config_path, _text(folder, plan, choices, parts, bases))
    lists = tuple(_write_lists(folder, plan, choices.force))
    notes = tuple(_notes(folder, plan, choices.backbone))
    described = describe_folder(folder.summary, folder.classes, plan.held_out)
    commands = next_commands(config_path, choices.method)
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


def _look_at(data: str, choices: Choices) -> _Folder:
    """Reads names, images and masks of a folder before anything is decided."""
    classes = classes_of_folder(data, choices.classes, choices.force)
    context = context_of_classes(classes, choices.context)
    reject_void_names(data, classes, choices.context)
    left_out: list[str] = []
    images = find_images(training_dirs(data)[0], left_out=left_out)
    options = choices.mask_suffix, choices.channels, choices.bits
    summary = summarize_folder(data, classes, images, *options)
    return _Folder(data, classes, context, summary, left_out)


def _plan(folder: _Folder, config_path: Path, choices: Choices) -> _Plan:
    """Decides what the user has left open: sizes, length, validation images, losses."""
    preset, summary = PRESETS[choices.preset], folder.summary
    sizes = choose_sizes(
        summary.size, summary.widths, BACKBONES[choices.backbone], preset.longest,
        choices.size, choices.crop, may_window=choices.preset != 'quick',
    )  # fmt: skip
    own_list, val_list = Path(folder.data, VAL_LIST), None
    if not summary.validation:
        val_list = own_list if own_list.exists() else config_path.with_name(VAL_LIST)
    redraws = choices.force and val_list != own_list
    held_out = _held_out(summary.labels, val_list, redraws) if val_list else []
    uses_unlabeled = choices.method != 'supervised'
    partly = [n for n in summary.partly_labeled if uses_unlabeled and n not in held_out]
    if uses_unlabeled and not summary.unlabeled and not partly:
        remedy = 'images without one, --method supervised, or lists of mmseg-cct make-splits'
        raise UserError(training_dirs(folder.data)[0], 'every image has a mask', remedy)
    min_pixels = RARE_SHARE * int(summary.pixels.sum())
    return _Plan(
        sizes,
        choices.iters or preset.iters,
        choices.batch_size or preset.batch_size,
        val_list,
        held_out,
        partly,
        config_path.with_name(f'{config_path.stem}_partly.txt') if partly else None,
        [name for name, n in zip(folder.classes, summary.pixels) if 0 < n < min_pixels],
    )


def _notes(folder: _Folder, plan: _Plan, backbone: str) -> Iterator[str]:
    """Tells what was decided."""
    if BACKBONES[backbone].halves_crops and torch.cuda.is_available():
        yield f'a GPU is there, and {backbone} needs none; for a larger encoder: --backbone r50'
    if plan.rare:
        yield f'rare: {", ".join(plan.rare)}; the config adds the Lovász loss'
    if number := len(plan.partly_labeled):
        drawn = f'partly drawn: of {counted(number, "mask")} more than half is ignored (255)'
        yield f'{drawn}; these images are unlabelled ones, too'
    yield from plan.sizes.notes
    if plan.val_list == Path(folder.data, VAL_LIST):
        yield f'validation: the images that {plan.val_list} names'
    parents = {Path(name).parent for name in plan.held_out}
    if parts := [str(parent) for parent in sorted(parents) if is_validation(parent.parts)]:
        yield f'validation: the masks of {training_dirs(folder.data)[1]}/{", ".join(parts)}'


def _warnings(folder: _Folder, plan: _Plan) -> Iterator[str]:
    """Tells what is worth a second look; refuses labels that cannot be meant."""
    if folder.left_out:
        yield describe_left_out(training_dirs(folder.data)[0], folder.left_out)
    if tests := [name for name in folder.summary.labels if name.lower().startswith('test/')]:
        problem = f'{len(tests)} labelled images of its folder test train, too'
        yield f'{training_dirs(folder.data)[0]}: {problem}; move them out to test on them'
    labels = Counter(folder.summary.labels.values())
    yield from judge_labels(labels, folder.classes, 'masks', dirs=training_dirs(folder.data))
    sides = folder.summary.sides(plan.held_out)
    unseen, untrained = one_sided(*(side.values() for side in sides))
    for ids, split, effect in (
        (unseen, 'validation', 'its IoU cannot be measured'),
        (untrained, 'training', 'it is never learned'),
    ):
        if ids:
            names = ', '.join(folder.classes[index] for index in sorted(ids))
            yield f'masks: no {split} mask contains {names}, so {effect}'


def _doubts(folder: _Folder, choices: Choices) -> Iterator[str]:
    """Names masks that the others contradict, and equal images with different masks."""
    if not FEWEST <= len(folder.summary.labels) <= _MOST_JUDGED:
        return
    image_dir, mask_dir = training_dirs(folder.data)
    images, masks = find_images(image_dir), find_masks(mask_dir, choices.mask_suffix)
    page = command_line('check_masks', folder.data, '--out', 'masks_check')
    try:
        if pairs := contradictions(images, masks):
            first, second = pairs[0]
            more = f' ({len(pairs)} such pairs)' if pairs[1:] else ''
            yield f'masks: {first} and {second} are the same image with different masks{more}'
        if choices.from_scratch:
            return
        model = _base_model(choices)
        start = _start(model.backbone, choices.weights, False)
        model.backbone = merged(model.backbone, start)
        judged = judge_masks(load_encoder(model), images, masks, len(folder.classes))
    except UserError as error:
        yield f'masks: not compared with one another: {one_line(error)}'
        return
    if doubtful := [mask.name for mask in judged if mask.is_doubtful]:
        names = f'{", ".join(doubtful[:3])}{" and more" if doubtful[3:] else ""}'
        yield f'masks: {names} may be of another image, as the others predict other classes there'
        yield f'masks: {page} shows all with what the others expect; wrong ones may go unnamed'


def _parts(folder: _Folder, plan: _Plan, choices: Choices) -> tuple[dict[str, Any], list[str]]:
    """Returns what the config changes of its bases, with the method merged in, and the bases."""
    backbone, values = BACKBONES[choices.backbone], folder.summary.values
    base = _base_model(choices)
    start = _start(base.backbone, choices.weights, choices.from_scratch)
    num_classes, losses = len(folder.classes), _LOSSES_OF_RARE if plan.rare else {}
    measured = dict(mean=values.mean, std=values.std) if values else {}
    model = dict(
        data_preprocessor=dict(size=Code('crop_size'), **measured),
        **_backbone(base.backbone, start, values),
        decode_head=dict(num_classes=num_classes, **losses),
        auxiliary_head=dict(num_classes=num_classes, context_classes=folder.context),
        **(dict(test_cfg=plan.sizes.windows) if plan.sizes.windows else {}),
    )
    lists = dict(partly_labeled=plan.partly_list, exclude=plan.partly_list and plan.val_list)
    dataset = dict(
        labeled=_dataset('labeled', 'train_pipeline', exclude=plan.val_list),
        unlabeled=_dataset('unlabeled', 'unlabeled_pipeline', **lists),
    )
    parts = method_parts(choices.method, model, dataset, base.decode_head.type)
    bank = parts['model'].pop('auxiliary_head', None)
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


def _base_model(choices: Choices) -> Any:
    return load_config(f'_base_/models/{BACKBONES[choices.backbone].model}', {}).model


def _text(
    folder: _Folder, plan: _Plan, choices: Choices, parts: Mapping[str, Any], bases: Sequence[str]
) -> str:
    """Writes the config in the order in which one reads it."""
    title = BACKBONES[choices.backbone].title
    dirs, val_dirs = training_dirs(folder.data), validation_dirs(folder.data)
    dataset = dict(**_image_and_mask_dirs(dirs), classes=Code('classes'))
    if choices.mask_suffix != '.png':
        dataset['mask_suffix'] = choices.mask_suffix
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
        *pipeline_lines(folder.summary.values, plan.sizes, has_unlabeled),
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


def _write_lists(folder: _Folder, plan: _Plan, force: bool) -> Iterator[Path]:
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


def _held_out(labeled: Mapping[str, frozenset[int]], val_list: Path, redraw: bool) -> list[str]:
    """Names the labelled images to validate on: those of earlier configs, to be comparable."""
    if len(labeled) < 2:
        raise UserError('masks', 'one mask, and no folder val to validate on', 'two masks or more')
    if redraw or not val_list.exists():
        chosen = [name for name in labeled if is_validation(name.split('/')[:-1])]
        return chosen if 0 < len(chosen) < len(labeled) else hold_out(labeled)
    held_out = read_list(val_list)
    if missing := [name for name in held_out if name not in labeled]:
        expected = 'a list of labelled images, another --out, or --force to draw a new list'
        raise UserError(val_list, f'{missing[0]} has no mask', expected)
    return held_out


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
    with DefaultScope.overwrite_default_scope('mmseg'):
        if is_timm:
            require_weights_of_timm(backbone, weights, 'model.backbone')
            return dict(pretrained_cfg_overlay=dict(file=weights))
        prefix = require_fitting_weights(backbone, weights, None, 'model.backbone')
    prefixed = dict(prefix=prefix or None) if prefix or backbone['init_cfg'].get('prefix') else {}
    return dict(init_cfg=dict(**prefixed, checkpoint=weights))
