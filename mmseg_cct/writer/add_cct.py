"""Writes a config of CCT on top of a config of MMSegmentation."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mmseg
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS

from mmseg_cct.config.load import load_config, protections
from mmseg_cct.config.walk import as_list, get_by_key, leaf_sets
from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import output_file
from mmseg_cct.utils.text import nearest

from .base_config import Z, choose_z, pipeline_without_masks
from .config_text import Code, assignment, installed_bases, method_parts, write_config
from .folder_classes import context_of_classes
from .next_commands import next_commands

# CCTSegmentor and BranchPreprocessor do everything that these do.
_EXTENDED = {
    'model.type': (
        *('EncoderDecoder', 'mmseg.EncoderDecoder'),
        *('CascadeEncoderDecoder', 'mmseg.CascadeEncoderDecoder'),
    ),
    'model.data_preprocessor.type': ('SegDataPreProcessor', 'mmseg.SegDataPreProcessor', None),
}


class AddedCCT(NamedTuple):
    """A written config, the choices made for it and the commands to run next, one per line."""

    file: Path
    choices: tuple[str, ...]
    commands: tuple[str, ...]


def add_cct(
    config: str,
    unlabeled: str,
    out: str,
    *,
    context: Sequence[str] | None = None,
    method: str = 'cct-strong',
    force: bool = False,
) -> AddedCCT:
    """Writes a CCT config on top of a config; its data, schedule and evaluation stay.

    `config` is the path or name of a config of MMSegmentation, `unlabeled` a folder of images, and
    `context` names the classes that are not objects; by default the background, if there is one.

    Raises:
        UserError: There is no such config, CCT cannot train on its model or data, a name or the
            folder does not fit, or the file exists.
    """
    target = Path(out)
    if target.suffix != '.py':
        raise UserError(f'--out {out}', '', f'the name of a config, such as {target.stem}.py')
    if target.exists() and not force:
        raise UserError(out, 'exists', 'another --out, or --force')
    images = find_images(unlabeled)
    config_path, base = _find(config, target)
    output_file(target, [unlabeled], overwrite=force)

    settings = _load(config, config_path)
    context = context_of_classes(_classes(settings), context)
    with DefaultScope.overwrite_default_scope('mmseg'), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # MMSeg warns of losses, which nothing computes here
        z, num_classes = choose_z(settings.model)
        pipeline, mixing = pipeline_without_masks(settings.train_dataloader.dataset)
    crop_size = settings.get('crop_size')
    for step in pipeline:
        # the config's own variable: labelled and unlabelled crops stay the same
        if crop_size is not None and isinstance(step, dict) and step.get('crop_size') == crop_size:
            step['crop_size'] = Code('_base_.crop_size')

    bank = _decoders(z, num_classes, context)
    model = dict(data_preprocessor=dict(type='BranchPreprocessor'))
    *stages, main = as_list(settings.model.decode_head)
    parts = method_parts(method, model, bank, _dataset(unlabeled, pipeline), main.type)
    if stages and 'decode_head' in parts['model']:
        raise UserError(f'--method {method}', 'sets model.decode_head', 'a model of one main head')
    rules = _rules_of_heads(settings)
    _fit_to_base(parts, settings, rules)
    write_config(target, _text(parts, settings, config_path.name, base))

    objects = ', '.join(context) or 'none, see --context'
    without = f', without {", ".join(mixing)}' if mixing else ''
    choices = [
        f'z: {z.title}, {z.channels} channels at stride {z.stride}',
        f'classes: {num_classes}; context (not objects): {objects}',
        f'unlabelled: {len(images)} images of {unlabeled}, augmented as the labelled ones{without}',
    ]
    if rules:
        kept = f'your heads keep its rules, as {", ".join(rules)}'
        choices.append(f'learning rates: auxiliary_head is the auxiliary decoders now; {kept}')
    return AddedCCT(target, tuple(choices), next_commands(target, method))


def _load(config: str, path: Path) -> Config:
    """Loads a config on which CCT can be put: one for training an EncoderDecoder."""
    settings = load_config(str(path), {})
    for key, extended in _EXTENDED.items():
        if (value := get_by_key(settings, key)) not in extended:
            raise UserError(config, f'{key}={value!r}', f'{extended[0]}, which CCT extends')
    return settings


def _decoders(z: Z, num_classes: int, context: Sequence[str]) -> dict[str, Any]:
    return dict(
        **z.selector,
        in_channels=z.channels,
        stride=z.stride,
        num_classes=num_classes,
        context_classes=context,
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    )


def _dataset(unlabeled: str, pipeline: list[Any]) -> dict[str, Any]:
    """Pairs the config's own data set with the unlabelled images."""
    folder = dict(image_dir=unlabeled, subset='unlabeled', pipeline=pipeline)
    labeled = Code('_base_.train_dataloader.dataset')
    sets = dict(labeled=labeled, unlabeled=dict(type='FolderDataset', **folder))
    return dict(_delete_=True, type='SemiSegDataset', **sets)


def _fit_to_base(parts: dict[str, Any], settings: Config, rules: Mapping[str, Any]) -> None:
    """Adds to the parts what they keep or replace of the base: heads, sampler, hooks, rules."""
    if parts['model']['type'] == 'EncoderDecoder':  # or the cascade
        parts['model']['type'] = settings.model.type
    bank = parts['model'].pop('auxiliary_head', None)
    parts['model']['auxiliary_head'] = _auxiliary_heads(settings.model, bank)
    sampler = dict(type='PairSampler', shuffle=True)
    if settings.train_dataloader.get('sampler'):
        sampler = dict(_delete_=True, **sampler)
    parts['train_dataloader'] = dict(sampler=sampler, **parts['train_dataloader'])
    parts['default_hooks'] |= protections() | dict(iteration_seed=dict(type='IterationSeedHook'))
    # the optimizer's rules for MMSegmentation's auxiliary heads, which have another name in CCT
    if rules:
        optim_wrapper = parts.setdefault('optim_wrapper', {})
        optim_wrapper.setdefault('paramwise_cfg', {})['custom_keys'] = rules


def _text(parts: Mapping[str, Any], settings: Config, name: str, base: Any) -> str:
    base_imports = as_list((settings.get('custom_imports') or {}).get('imports'))
    imports = [*base_imports, *({'mmseg_cct.plugin'} - set(base_imports))]
    written = 'model', 'train_dataloader'
    lines = [
        f'# CCT on {name}, whose data, schedule and evaluation stay.',
        '# Written by mmseg-cct add-cct, yours to change.',
        assignment('_base_', base),
        *([assignment('work_dir', None)] if settings.get('work_dir') else []),  # that of the base
        assignment('custom_imports', dict(imports=imports, allow_failed_imports=False)),
        '',
        '# context_classes: what is not an object. λ_u = 30 is for 21 classes and more; with fewer',
        '# it is scaled in proportion',
        *(assignment(part, parts[part]) for part in written),
        *(assignment(part, value) for part, value in parts.items() if part not in written),
    ]
    return ''.join(f'{line}\n' for line in lines)


def _auxiliary_heads(base: Mapping[str, Any], bank: Mapping[str, Any] | None) -> Any:
    base_heads = base.get('auxiliary_head')
    if base_heads:
        star = '*' if isinstance(base_heads, (list, tuple)) else ''
        heads: list[Any] = [Code(f'{star}_base_.model.auxiliary_head')]
        return [*heads, bank] if bank else heads
    if bank and 'auxiliary_head' in base:  # mmengine does not merge a dict with None or a list
        return dict(_delete_=True, **bank)
    return bank


def _find(name: str, target: Path) -> tuple[Path, Any]:
    """Finds the config's path, and the name by which a config in `target`'s folder can use it."""
    if Path(name).is_file():
        if Path(name).resolve() == target.resolve():
            raise UserError(f'--out {target}', 'is the config itself', 'another name')
        base = os.path.relpath(Path(name).resolve(), target.resolve().parent)
        return Path(name), Path(base).as_posix()
    root = Path(mmseg.__file__).parent / '.mim' / 'configs'
    short = name.removeprefix('mmseg::').removesuffix('.py')
    shipped = {path.stem: path for path in root.glob('*/*.py')}
    path = shipped.get(short, root / f'{short}.py')
    if not path.is_file():
        raise UserError(name, 'no such file', nearest(Path(short).name, list(shipped), cutoff=0.7))
    return path, installed_bases(f'mmseg::{path.relative_to(root).as_posix()}')


def _classes(config: Config) -> tuple[str, ...]:
    dataset = next(leaf_sets(config.train_dataloader.dataset))[1]
    classes = dataset.get('classes') or (dataset.get('metainfo') or {}).get('classes')
    with DefaultScope.overwrite_default_scope('mmseg'):
        dataset_class = DATASETS.get(dataset['type'])
    return tuple(classes or getattr(dataset_class, 'METAINFO', {}).get('classes') or ())


def _rules_of_heads(config: Config) -> dict[str, Any]:
    heads = config.model.get('auxiliary_head')
    prefix = 'supervised_heads' if isinstance(heads, Sequence) else 'supervised_heads.0'
    rules = (config.optim_wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    keys = [key for key in rules if heads and 'auxiliary_head' in key]
    return {key.replace('auxiliary_head', prefix): rules[key] for key in keys}
