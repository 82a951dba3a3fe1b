"""Writes the config of a folder of images and masks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.registry import DefaultScope

from mmseg_cct.cli.commands import next_commands
from mmseg_cct.config.compose import merged
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, SCOPE
from mmseg_cct.datasets.files.image_files import (
    describe_left_out,
    find_images,
    read_list,
    write_list,
)
from mmseg_cct.datasets.files.labels import judge_labels
from mmseg_cct.datasets.folder_summary import FolderSummary, describe_folder, summarize_folder
from mmseg_cct.datasets.hold_out import hold_out, one_sided
from mmseg_cct.datasets.image_values import ImageValues
from mmseg_cct.engine.weights import require_fitting_weights, require_weights_of_timm
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_outside
from mmseg_cct.utils.text import one_line

from .backbones import BACKBONES
from .choices import PRESETS, Choices, check_choices, plain_name
from .config_text import Code, assignment, installed_bases, write_config
from .folder_classes import (
    classes_of_folder,
    context_of_classes,
    reject_void_names,
    table_of_folder,
)
from .image_sizes import choose_sizes
from .method_parts import HOOKS, method_parts
from .pipeline_lines import pipeline_lines

# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02
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


def new_config(data: str, out: str, choices: Choices) -> NewConfig:
    """Looks at a folder, with `images`, `masks` and perhaps `val`, and writes a config into `out`.

    Without `val`, a fifth of the labelled images is held out for validation, in a list beside the
    config.

    Raises:
        UserError: The folder, a name, the size or the weights do not fit, or the config exists.
    """
    # 1. What is in the folder, before anything is decided
    check_choices(data, choices)
    require_outside(out, [Path(data, kind) for kind in ('images', 'masks')], '--out')
    file = Path(out, f'{choices.method}_{choices.backbone}_{plain_name(data)}.py')
    if file.exists() and not choices.force:
        again = 'it also trains masks that were added since: give train.py another --work-dir'
        raise UserError(f'{file}: exists, and {again}; or choose another --out, or --force')
    classes = classes_of_folder(data, choices.classes, choices.force)
    context = context_of_classes(classes, choices.context)
    reject_void_names(data, classes, choices.context)
    others: list[str] = []
    images = find_images(Path(data, 'images'), others=others)
    given = choices.mask_suffix, choices.channels, choices.bits
    summary = summarize_folder(data, classes, images, *given)
    if choices.method != 'supervised' and not summary.unlabeled:
        raise UserError(
            f'{data}/images',
            'every image has a mask; add images without one, pass --method supervised, or leave '
            'masks out by lists from tools/make_splits.py',
        )

    # 2. What follows from it, where the user has not chosen
    preset, backbone = PRESETS[choices.preset], BACKBONES[choices.backbone]
    iters, batch_size = choices.iters or preset.iters, choices.batch_size or preset.batch_size
    sizes = choose_sizes(
        summary.size, summary.widths, backbone, preset.longest,
        choices.size, choices.crop, may_window=choices.preset != 'quick',
    )  # fmt: skip
    val_list = None if summary.validation else Path(out, 'val.txt')
    held = _held_out(summary.labels, val_list, choices.force) if val_list else []
    labels = Counter(summary.labels.values())
    judged = tuple(judge_labels(labels, classes, 'masks', data=data))
    least = RARE_SHARE * int(summary.pixels.sum())
    rare = [name for name, pixels in zip(classes, summary.pixels) if 0 < pixels < least]

    # 3. What the config changes of its bases, with the method merged in
    values = summary.values
    base = load_config(str(CONFIGS / '_base_/models' / f'{backbone.model}.py'), {}).model
    start = _start(base.backbone, choices.weights, choices.from_scratch)
    measured = dict(mean=values.mean, std=values.std) if values else {}
    model = dict(
        data_preprocessor=dict(size=Code('crop_size'), **measured),
        **_backbone(base.backbone, start, values),
        decode_head=dict(num_classes=len(classes), **(_LOSSES_OF_RARE if rare else {})),
        auxiliary_head=dict(num_classes=len(classes), context_classes=context),
        **(dict(test_cfg=sizes.windows) if sizes.windows else {}),
    )
    folders = dict(
        labeled=_folder('labeled', 'train_pipeline', exclude=val_list),
        unlabeled=_folder('unlabeled', 'unlabeled_pipeline'),
    )
    parts = method_parts(choices.method, model, folders, base.decode_head.type)
    bank = parts['model'].pop('auxiliary_head', None)
    heads = base.auxiliary_head if isinstance(base.auxiliary_head, list) else []
    parts['train_dataloader'] = dict(batch_size=batch_size, **parts['train_dataloader'])
    parts['model']['auxiliary_head'] = _auxiliary_heads(heads, bank, len(classes))
    loop = 'iterations'
    if parts['default_hooks'] == HOOKS:  # those of this base
        loop = 'cct_teacher'
        del parts['default_hooks']
    if choices.from_scratch:  # the backbone learns as fast as the rest
        parts['optim_wrapper'] = dict(paramwise_cfg=None)
    schedule = 'adamw_small' if choices.from_scratch else backbone.schedule
    schedules = f'schedules/{loop}', f'schedules/{schedule}'
    bases = f'models/{backbone.model}', 'datasets/pairs', *schedules

    # 4. The text, in the order in which one reads a config
    folder = dict(**_places(Path(data)), classes=Code('classes'))
    if choices.mask_suffix != '.png':
        folder['mask_suffix'] = choices.mask_suffix
    validated = _folder('labeled', 'test_pipeline', ann_file=val_list)
    if not val_list:
        validated = _folder('labeled', 'test_pipeline', **_places(Path(data, 'val')))
    lines = [
        f'# {backbone.title} on {one_line(data)}: written by tools/new_config.py, yours to change.',
        assignment('_base_', installed_bases(*(f'{SCOPE}::_base_/{part}.py' for part in bases))),
        '',
        assignment('classes', classes),
        assignment('folder', dict(type='FolderDataset', **folder)),
        *pipeline_lines(values, sizes, 'unlabeled' in parts['train_dataloader']['dataset']),
        *(_RARE_COMMENT if rare else ()),
        assignment('model', parts.pop('model')),
        '# batch_size counts pairs of a labelled and an unlabelled image',
        assignment('train_dataloader', parts.pop('train_dataloader')),
        assignment('auto_scale_lr', dict(base_batch_size=batch_size)),
        assignment('val_dataloader', dict(dataset=validated)),
        'test_dataloader = val_dataloader',
        '',
        assignment('train_cfg', dict(max_iters=iters, val_interval=max(iters // 8, 1))),
        assignment('param_scheduler', dict(end=iters)),
        *(assignment(name, value) for name, value in parts.items() if value),
    ]

    # 5. Written beside it: who validates, and the names of the classes
    write_config(file, ''.join(f'{line}\n' for line in lines))
    lists = []
    if val_list and (choices.force or not val_list.exists()):
        write_list(val_list, held)
        lists.append(val_list)
    if (table := table_of_folder(data, classes)) is not None:
        lists.append(table)

    # 6. What the user should know, and run next
    rare_note = [f'rare: {", ".join(rare)}; the config adds the Lovász loss'] if rare else []
    warnings = (
        *([describe_left_out(Path(data, 'images'), others)] if others else ()),
        *judged,
        *_one_sided(summary, classes, held),
    )
    return NewConfig(
        describe_folder(summary, classes, held),
        file,
        tuple(lists),
        (*rare_note, *sizes.notes),
        warnings,
        next_commands(file, choices.method),
    )


def _folder(subset: str, pipeline: str, **paths: str | Path | None) -> Code:
    """Code of a data set in the config's `folder`, with other folders or with lists of images."""
    named = {key: str(path) for key, path in paths.items() if path}
    settings = [f'{key}={value!r}' for key, value in dict(subset=subset, **named).items()]
    return Code(f'dict(folder, {", ".join(settings)}, pipeline={pipeline})')


def _places(root: Path) -> dict[str, str]:
    return dict(image_dir=(root / 'images').as_posix(), mask_dir=(root / 'masks').as_posix())


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


def _held_out(labeled: Mapping[str, frozenset[int]], val_list: Path, redraw: bool) -> list[str]:
    """Names the labelled images to validate on: those of earlier configs, to be comparable."""
    if len(labeled) < 2:
        raise UserError('masks', 'one mask, and no folder val to validate on', 'two masks or more')
    if redraw or not val_list.exists():
        return hold_out(labeled)
    held = read_list(val_list)
    if missing := [name for name in held if name not in labeled]:
        expected = 'a list of labelled images, another --out, or --force to draw a new list'
        raise UserError(val_list, f'{missing[0]} has no mask', expected)
    return held


def _one_sided(
    summary: FolderSummary, classes: Sequence[str], held: Sequence[str]
) -> Iterator[str]:
    """Warns of classes that are trained but not validated on, and the other way round."""
    unseen, untrained = one_sided(*(side.values() for side in summary.sides(held)))
    for ids, found in ((unseen, 'validation'), (untrained, 'training')):
        if ids:
            names = ', '.join(classes[index] for index in sorted(ids))
            lost = 'its IoU cannot be measured' if ids is unseen else 'it is never learned'
            yield f'masks: no {found} mask contains {names}, so {lost}'


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
