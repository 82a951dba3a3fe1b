"""Writes the setting of a folder of images and masks."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.registry import DefaultScope

from mmseg_cct.checks.leaks import describe_leaks
from mmseg_cct.checks.masks import judge_labels
from mmseg_cct.checks.weights import (
    prefix_of_weights,
    require_fitting_weights,
    require_weights_of_timm,
)
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, SCOPE
from mmseg_cct.datasets.folder_summary import FolderSummary, summarize_folder
from mmseg_cct.datasets.image_values import ImageValues
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_outside
from mmseg_cct.utils.image_files import find_images
from mmseg_cct.utils.image_lists import read_list, require_listable, write_list
from mmseg_cct.utils.rounds import next_round
from mmseg_cct.utils.text import one_line

from .backbones import BACKBONES, Backbone
from .folder_classes import classes_of_folder, context_of_classes
from .next_commands import next_commands
from .rounds import changes_since, latest_round, report_of_rounds, require_new_round
from .setting_text import assignment, write_setting

# Hold out every n-th labelled image for validation if there is no folder for that.
HOLD_OUT = 5
_LONGEST_SIDE = 512  # pixels, if no size is chosen
_SHORTEST_CROP = 96  # pixels, if no crop is chosen
# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02


class NewConfig(NamedTuple):
    """A written setting of a folder.

    `held_out` names the labelled images to validate on if there is no folder for that, and `lists`
    holds their list, if it was written. `rare` are the classes for which the Lovász loss is added.
    `warnings` are worth a second look, and `commands` are to run next, one per line.
    """

    summary: FolderSummary
    classes: tuple[str, ...]
    held_out: tuple[str, ...]
    file: Path
    lists: tuple[Path, ...]
    rare: tuple[str, ...]
    warnings: tuple[str, ...]
    commands: tuple[str, ...]


def new_config(
    data: str,
    out: str,
    classes: Sequence[str] | None = None,
    *,
    context: Sequence[str] | None = None,
    backbone: str = 'mbv2',
    method: str = 'cct-strong',
    size: tuple[int, int] | None = None,
    crop: tuple[int, int] | None = None,
    iters: int = 4000,
    batch_size: int = 8,
    mask_suffix: str = '.png',
    channels: Sequence[int] | None = None,
    bits: int | None = None,
    weights: str | None = None,
    from_scratch: bool = False,
    force: bool = False,
) -> NewConfig:
    """Looks at a folder and writes a setting for it.

    Args:
        data: The folder, with `images`, `masks` and perhaps `val`. Without `val`, every fifth
            labelled image is held out for validation, in a list beside the setting.
        out: Folder for the setting.
        classes: Class names in the order of their ids; by default those of `classes.json`.
        context: Classes that are not objects; by default the background, if there is one.
        backbone: A key of `BACKBONES`.
        method: Name of the method that the setting trains by default.
        size: Width and height that images are resized into, scaled by 0.5 to 2 in training; by
            default their own, with a longest side of 512 at most.
        crop: Width and height of the training crops; by default `size`, for MobileNetV2 half of it.
        iters: Iterations of the training.
        batch_size: Pairs of a labelled and an unlabelled image.
        mask_suffix: End of a mask's name.
        channels: Channels of the images to load, counted from 0; by default all except opacity.
        bits: Bits of the images' values, if the files store them in more; by default as many as the
            values need.
        weights: File of the backbone's weights; by default those of the model zoo.
        from_scratch: Whether to start from random weights.
        force: Whether to overwrite files.

    Returns:
        What was written.

    Raises:
        UserError: The folder, a name, the size or the weights do not fit, or a file exists.
    """
    require_outside(out, [Path(data, kind) for kind in ('images', 'masks')], '--out')
    classes = classes_of_folder(data, classes)
    context = context_of_classes(classes, context)
    chosen = BACKBONES[backbone]
    summary = summarize_folder(data, len(classes), mask_suffix, channels, bits)
    if method != 'supervised' and not summary.unlabeled:
        raise UserError(
            f'{data}/images: every image has a mask; expected some without one, or --method '
            'supervised, or lists from tools/make_splits.py that leave masks out'
        )
    if size is None:
        size = _default_size(summary.size, chosen.stride)
    if crop is None:
        crop = _default_crop(size, chosen)
    for option, sides in (('--size', size), ('--crop', crop)):
        if any(side < chosen.stride or side % chosen.stride for side in sides):
            width, height = (max(-(-s // chosen.stride), 1) * chosen.stride for s in sides)
            raise UserError(
                f'{option} {sides[0]}x{sides[1]}: expected multiples of {chosen.stride}, the '
                f'stride of the network, such as {width}x{height}'
            )

    first = Path(out, f'{method}_{backbone}_{plain_name(data)}.py')
    latest = latest_round(first)
    # --force writes the latest round anew; later rounds keep the validation images of the first
    redraw = force and latest in (None, first)
    val_list = None if summary.validation else Path(out, 'val.txt')
    held = _held_out(summary.labeled, val_list, redraw) if val_list else []
    title = _title(chosen, data, summary, len(held))
    start = _start(chosen, weights, from_scratch)
    rare = rare_classes(summary, classes)
    if latest and not force:
        require_new_round(latest, title)
    file = (latest if force else next_round(latest)) if latest else first

    schedule = 'adamw_small' if from_scratch else chosen.schedule
    lines = [
        title,
        '# Written by tools/new_config.py, yours to change.',
        assignment('_base_', _bases(chosen.model, schedule, out)),
        assignment('method', method),
        '',
        assignment('classes', classes),
        f'{assignment("context_classes", context)}  # what is not an object',
        f'{assignment("image_size", size)}  # width, height; training scales it by 0.5 to 2',
        f'{assignment("crop_size", crop[::-1])}  # height, width',
        '',
        *_data_lines(Path(data), mask_suffix, val_list, batch_size),
        assignment('train_cfg', dict(max_iters=iters, val_interval=max(iters // 8, 1))),
        *_image_lines(summary.values),
        *_model_lines(start.get('model', {}), summary.values, rare),
        *(assignment(name, value) for name, value in start.items() if name != 'model'),
    ]
    text = ''.join(f'{line}\n' for line in lines)
    changes = changes_since(latest, text) if latest and file != latest else ()
    write_setting(file, text)
    lists = []
    if val_list and (redraw or not val_list.exists()):
        write_list(val_list, held)
        lists.append(val_list)
    warnings = [
        *changes,
        *judge_labels(summary.labels, classes, 'masks'),
        *_leaks(Path(data), summary, held),
    ]
    commands = *next_commands(file, method), *report_of_rounds(first, file)
    return NewConfig(
        summary, classes, tuple(held), file, tuple(lists), tuple(rare), tuple(warnings), commands
    )


def _title(backbone: Backbone, data: str, summary: FolderSummary, held: int) -> str:
    return (
        f'# {backbone.title} on {one_line(data)}: {len(summary.labeled) - held} labelled and '
        f'{summary.unlabeled} unlabelled images, {summary.validation or held} to validate on.'
    )


def _bases(model: str, schedule: str, out: str) -> list[str]:
    """The base files: in the setting's own checkout, or in the installed package."""
    configs, folder = CONFIGS.resolve(), Path(out).resolve()
    root = f'{SCOPE}::_base_'
    if folder.is_relative_to(configs):
        root = Path(os.path.relpath(configs / '_base_', folder)).as_posix()
    parts = f'models/{model}', 'datasets/folder_resized', 'schedules/cct_teacher'
    return [f'{root}/{part}.py' for part in (*parts, f'schedules/{schedule}')]


def _data_lines(
    data: Path, mask_suffix: str, val_list: Path | None, batch_size: int
) -> tuple[str, ...]:
    suffix = {} if mask_suffix == '.png' else dict(mask_suffix=mask_suffix)
    rest, held = {}, {}
    if val_list:  # masks that are added later are trained on, too
        rest, held = dict(exclude=str(val_list)), dict(ann_file=str(val_list))

    def folder(root: Path) -> dict[str, str]:
        return dict(image_dir=str(root / 'images'), mask_dir=str(root / 'masks'), **suffix)

    train = dict(
        batch_size=batch_size,
        dataset=dict(labeled={**folder(data), **rest}, unlabeled=folder(data)),
    )
    val = {**folder(data if val_list else data / 'val'), **held}
    return (
        '# batch_size counts pairs of a labelled and an unlabelled image',
        assignment('train_dataloader', train),
        assignment('val_dataloader', dict(dataset=val)),
        'test_dataloader = val_dataloader',
    )


def rare_classes(summary: FolderSummary, classes: Sequence[str]) -> list[str]:
    """The classes in the masks whose share of the labelled pixels is below `RARE_SHARE`."""
    total = int(summary.pixels.sum())
    return [name for name, n in zip(classes, summary.pixels) if 0 < n < RARE_SHARE * total]


def _image_lines(values: ImageValues | None) -> tuple[str, ...]:
    """The loader of the images, if MMSegmentation's does not suit them."""
    if values is None:
        return ()
    return (
        f'# {values.description}; mean and std were measured',
        assignment('image_loader', values.loader),
    )


def _model_lines(
    start: Mapping[str, Any], values: ImageValues | None, rare: Sequence[str]
) -> tuple[str, ...]:
    """Changes of the model: the images' mean, its initial weights, a loss for rare classes."""
    comment: tuple[str, ...] = ()
    model = dict(start)
    if values is not None:
        model = dict(data_preprocessor=dict(mean=values.mean, std=values.std), **model)
    if rare:
        names = ', '.join(rare) if len(rare) < 4 else f'{len(rare)} classes'
        comment = (
            f'# {one_line(names)}: below {RARE_SHARE:.0%} of the labelled pixels, which '
            'cross-entropy',
            '# alone leaves out; the Lovász loss counts each class by its IoU '
            '(docs/rare_classes.md)',
        )
        losses = [dict(type='MeanCrossEntropy'), dict(type='BatchLovasz')]
        model |= dict(decode_head=dict(loss_decode=losses))
    return (*comment, assignment('model', model)) if model else ()


def plain_name(data: str) -> str:
    """Names a folder's setting: the folder's, with dashes for spaces and special characters."""
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


def _held_out(labeled: Sequence[str], val_list: Path, redraw: bool) -> list[str]:
    """Names the labelled images to validate on: those of earlier rounds, for comparable results.

    The first round holds out every fifth.
    """
    if len(labeled) < 2:
        raise UserError(
            'masks: one mask, and no folder val to validate on; expected two masks or more'
        )
    if redraw or not val_list.exists():
        require_listable(val_list, labeled)
        return list(labeled[::HOLD_OUT])
    held = read_list(val_list)
    if missing := [name for name in held if name not in labeled]:
        raise UserError(
            f'{val_list}: {missing[0]} has no mask; expected a list of labelled images, another '
            '--out, or no such file, so that a new list is drawn'
        )
    return held


def _leaks(data: Path, summary: FolderSummary, names: Sequence[str]) -> Iterator[str]:
    """Warns of images that are both trained and validated on; a held-out part may have copies."""
    images = find_images(data / 'images')
    if summary.validation:
        held = find_images(data / 'val' / 'images')
    else:
        held = {name: images.pop(name) for name in names}
    sets: dict[str, list[Path]] = dict(labelled=[], unlabelled=[])
    for name, path in images.items():
        sets['labelled' if name in summary.labeled else 'unlabelled'].append(path)
    yield from describe_leaks(sets, held.values(), 'validated on')


def _start(backbone: Backbone, weights: str | None, from_scratch: bool) -> dict[str, Any]:
    """Variables that set where the backbone's weights come from, if not from the model zoo."""
    if not from_scratch and weights is None:
        return {}
    base = CONFIGS / '_base_/models' / f'{backbone.model}.py'
    settings = load_config(str(base), {}).model.backbone
    is_timm = 'pretrained' in settings
    if weights is not None:
        return dict(model=dict(backbone=_start_from(weights, settings, is_timm)))
    if settings.get('frozen'):
        raise UserError(
            '--from-scratch: a frozen encoder would stay random; expected --weights, or an encoder '
            'that is trained'
        )
    random = dict(pretrained=False) if is_timm else dict(init_cfg=None)
    # random weights: the backbone learns as fast as the rest
    return dict(model=dict(backbone=random), optim_wrapper=dict(paramwise_cfg=None))


def _start_from(weights: str, backbone: Mapping[str, Any], is_timm: bool) -> dict[str, Any]:
    if not Path(weights).is_file():
        raise UserError(f'--weights: {weights} is not a file; expected a checkpoint')
    with DefaultScope.overwrite_default_scope('mmseg'):
        if is_timm:
            require_weights_of_timm(backbone, weights, 'model.backbone')
            return dict(pretrained_cfg_overlay=dict(file=weights))
        prefix = prefix_of_weights(backbone, weights)
        require_fitting_weights(backbone, weights, prefix, 'model.backbone')
    prefixed = dict(prefix=prefix or None) if prefix or backbone['init_cfg'].get('prefix') else {}
    return dict(init_cfg=dict(**prefixed, checkpoint=weights))
