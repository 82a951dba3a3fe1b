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

from mmseg_cct.cli.commands import next_commands
from mmseg_cct.config.load import load_config, protections
from mmseg_cct.config.walk import as_list, get_by_key, leaf_sets
from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import output_file
from mmseg_cct.utils.text import nearest

from .config_text import Code, assignment, installed_bases, write_config
from .dry_run import choose_z
from .folder_classes import context_of_classes
from .method_parts import method_parts
from .unlabeled_pipeline import pipeline_without_masks

# CCTSegmentor and BranchPreprocessor do everything that these do.
_EXTENDED = {
    'model.type': ('EncoderDecoder', 'mmseg.EncoderDecoder'),
    'model.data_preprocessor.type': ('SegDataPreProcessor', 'mmseg.SegDataPreProcessor', None),
}
_PARTS = (
    *('model.backbone', 'model.decode_head'),
    *('train_dataloader.dataset', 'train_cfg', 'optim_wrapper'),
)


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
    # 1. Where from and where to
    target = Path(out)
    if target.suffix != '.py':
        raise UserError(f'--out {out}', '', f'the name of a config, such as {target.stem}.py')
    if target.exists() and not force:
        raise UserError(out, 'exists', 'another --out, or --force')
    found = find_images(unlabeled)
    path, base = _find(config, target)
    if path.resolve() == target.resolve():
        raise UserError(f'--out {out}', 'is the config itself', 'another name')
    output_file(target, [unlabeled], overwrite=force)

    # 2. What the config has, and what its model gives to the auxiliary decoders
    settings = load_config(str(path), {})
    for key, kinds in _EXTENDED.items():
        if (kind := get_by_key(settings, key)) not in kinds:
            raise UserError(config, f'{key}={kind!r}', f'{kinds[0]}, which CCT extends')
    for key in _PARTS:
        if not get_by_key(settings, key):
            raise UserError(config, f'no {key}', 'a config for training an EncoderDecoder')
    classes = _classes(settings)
    context = context_of_classes(classes, context)
    with DefaultScope.overwrite_default_scope('mmseg'), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # MMSeg warns of losses, which nothing computes here
        z, num_classes = choose_z(settings.model)
        pipeline, mixing = pipeline_without_masks(settings.train_dataloader.dataset)
    for step in pipeline:  # the config's own variable: labelled and unlabelled crops stay the same
        own = settings.get('crop_size')
        if own is not None and isinstance(step, dict) and step.get('crop_size') == own:
            step['crop_size'] = Code('_base_.crop_size')

    # 3. What CCT adds, with the method merged in
    bank = dict(
        type='PerturbedDecoderBank',
        **z.place,
        in_channels=z.channels,
        stride=z.stride,
        num_classes=num_classes,
        context_classes=context,
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    )
    preprocessor = dict(type='BranchPreprocessor')
    model = dict(type='CCTSegmentor', data_preprocessor=preprocessor, auxiliary_head=bank)
    dataset = dict(
        _delete_=True,
        type='SemiSegDataset',
        labeled=Code('_base_.train_dataloader.dataset'),
        unlabeled=dict(
            type='FolderDataset', image_dir=unlabeled, subset='unlabeled', pipeline=pipeline
        ),
    )
    parts = method_parts(method, model, dataset, settings.model.decode_head.type)
    bank = parts['model'].pop('auxiliary_head', None)
    parts['model']['auxiliary_head'] = _auxiliary_heads(settings.model, bank)
    sampler = dict(type='PairSampler', shuffle=True)
    if settings.train_dataloader.get('sampler'):
        sampler = dict(_delete_=True, **sampler)
    parts['train_dataloader'] = dict(sampler=sampler, **parts['train_dataloader'])
    parts['default_hooks'] |= protections() | dict(iteration_seed=dict(type='IterationSeedHook'))
    # the optimizer's rules for MMSegmentation's auxiliary heads, which have another name in CCT
    if rules := _rules_of_heads(settings):
        own = parts.setdefault('optim_wrapper', {}).setdefault('paramwise_cfg', {})
        own['custom_keys'] = rules

    # 4. The text
    own_imports = as_list((settings.get('custom_imports') or {}).get('imports'))
    imports = [*own_imports, *({'mmseg_cct.plugin'} - set(own_imports))]
    lines = [
        f'# CCT on {path.name}, whose data, schedule and evaluation stay.',
        '# Written by tools/add_cct.py, yours to change.',
        assignment('_base_', base),
        *([assignment('work_dir', None)] if settings.get('work_dir') else []),  # that of the base
        assignment('custom_imports', dict(imports=imports, allow_failed_imports=False)),
        '',
        '# context_classes: what is not an object. λ_u = 30 is for 21 classes and more; with fewer',
        '# it is scaled in proportion',
        assignment('model', parts.pop('model')),
        assignment('train_dataloader', parts.pop('train_dataloader')),
        *(assignment(name, value) for name, value in parts.items()),
    ]
    write_config(target, ''.join(f'{line}\n' for line in lines))

    # 5. What was chosen
    objects = ', '.join(context) or 'none, see --context'
    without = f', without {", ".join(mixing)}' if mixing else ''
    choices = [
        f'z: {z.title}, {z.channels} channels at stride {z.stride}',
        f'classes: {num_classes}; context (not objects): {objects}',
        f'unlabelled: {len(found)} images of {unlabeled}, augmented as the labelled ones{without}',
    ]
    if rules:
        choices.append(
            'learning rates: auxiliary_head names the auxiliary decoders now; your heads keep its '
            f'rules, as {", ".join(rules)}'
        )
    return AddedCCT(target, tuple(choices), next_commands(target, method))


def _auxiliary_heads(base: Mapping[str, Any], bank: Mapping[str, Any] | None) -> Any:
    own = base.get('auxiliary_head')
    if own:
        several = '*' if isinstance(own, (list, tuple)) else ''
        heads: list[Any] = [Code(f'{several}_base_.model.auxiliary_head')]
        return [*heads, bank] if bank else heads
    if bank and 'auxiliary_head' in base:  # mmengine does not merge a dict with None or a list
        return dict(_delete_=True, **bank)
    return bank


def _find(name: str, target: Path) -> tuple[Path, Any]:
    """Finds the config's path, and the name by which a config in `target`'s folder can use it."""
    if Path(name).is_file():
        folder = target.resolve().parent
        return Path(name), Path(os.path.relpath(Path(name).resolve(), folder)).as_posix()
    root = Path(mmseg.__file__).parent / '.mim' / 'configs'
    short = name.removeprefix('mmseg::').removesuffix('.py')
    known = {path.stem: path for path in root.glob('*/*.py')}
    path = known.get(short, root / f'{short}.py')
    if not path.is_file():
        raise UserError(name, 'no such file', nearest(Path(short).name, list(known), cutoff=0.7))
    return path, installed_bases(f'mmseg::{path.relative_to(root).as_posix()}')


def _classes(config: Config) -> tuple[str, ...]:
    dataset = next(leaf_sets(config.train_dataloader.dataset))[1]
    own = dataset.get('classes') or (dataset.get('metainfo') or {}).get('classes')
    with DefaultScope.overwrite_default_scope('mmseg'):
        kind = DATASETS.get(dataset['type'])
    return tuple(own or getattr(kind, 'METAINFO', {}).get('classes') or ())


def _rules_of_heads(config: Config) -> dict[str, Any]:
    heads = config.model.get('auxiliary_head')
    own = 'supervised_heads' if isinstance(heads, Sequence) else 'supervised_heads.0'
    rules = (config.optim_wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    return {
        key.replace('auxiliary_head', own): rule
        for key, rule in rules.items()
        if heads and 'auxiliary_head' in key
    }
