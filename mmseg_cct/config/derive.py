"""Fills in what follows from other settings, so that a config says each thing once."""

from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.config import Config

from mmseg_cct.errors import Problem, UserError, raise_problems

from .compose import training_sets
from .walk import at, settings_of

# Settings that a config may lack because `derive` fills them in.
DERIVED = {
    *('train_cfg.max_iters', 'train_cfg.val_interval', 'param_scheduler.end'),
    'model.data_preprocessor.size',
}
# Names for the last iteration in mmengine's schedulers, their arguments and their states.
SCHEDULER_ENDS = ('end', 'total_iters', 'T_max', 'total_steps')
# Hooks that mmengine adds by itself; None removes one of these.
_OWN_HOOKS = {'runtime_info', 'timer', 'sampler_seed', 'logger', 'param_scheduler', 'checkpoint'}
# The size that a transform takes: its argument, and the top-level setting that fills it in.
_SIZES = {
    'Resize': ('scale', 'image_size'),
    'RandomResize': ('scale', 'image_size'),
    'RandomCrop': ('crop_size', 'crop_size'),
}
# A step with one of these has a size of its own.
_SET = {'scale', 'scale_factor', 'crop_size'}
_LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def derive(config: Config) -> None:
    """Fills in lengths, sizes and ends that a config leaves out, and removes hooks set to None.

    - `train_cfg.max_iters` and `val_interval` from `epochs`, `val_epochs` and `num_images`, where a
      schedule counts passes over the unlabelled images;
    - the `end` of a scheduler from the training's;
    - the sizes of `Resize`, `RandomResize` and `RandomCrop` from `image_size` and `crop_size`, and
      that of the preprocessor from `crop_size`;
    - the loading step of all pipelines, and the backbone if there are not three channels, from
      `image_loader`.

    A length in epochs without a known number of labels is a `UserError`.
    """
    _count_iterations(config)
    max_iters = at(config, 'train_cfg.max_iters')
    for scheduler in schedulers(config):
        has_end = any(key in scheduler for key in SCHEDULER_ENDS)
        if max_iters and not has_end and not scheduler.get('by_epoch', True):
            scheduler['end'] = max_iters
    fill_sizes(config)
    _set_image_loader(config)
    for key in _LOADERS:  # torch rejects persistent workers if there are no workers
        loader: Any = config.get(key) or {}
        if loader.get('persistent_workers') and not loader.get('num_workers'):
            loader.update(persistent_workers=False)
    hooks = config.get('default_hooks') or {}
    for name in [name for name, hook in hooks.items() if hook is None and name not in _OWN_HOOKS]:
        del hooks[name]


def _set_image_loader(config: Config) -> None:
    """Replaces MMSegmentation's loader by `image_loader`, and fits the model to its channels."""
    loader = config.get('image_loader')
    if loader is None:
        return
    for _, step in list(settings_of(config)):
        if isinstance(step, Mapping) and step.get('type') == 'LoadImageFromFile':
            kept = {key: step[key] for key in {'backend_args'} & step.keys()}
            step.clear()  # type: ignore[attr-defined]
            step.update(loader | kept)  # type: ignore[attr-defined]
    channels = len(loader.get('channels', (0, 1, 2)))
    for name in ('mean', 'std'):
        values = at(config, f'model.data_preprocessor.{name}')
        if values is not None and len(values) not in (1, channels):
            key = f'model.data_preprocessor.{name}'
            expected = f'{channels}, one for each of the channels of image_loader'
            raise UserError(Problem(key, f'{len(values)} values', expected))
    backbone = at(config, 'model.backbone')
    if channels != 3 and backbone and backbone.get('type') != 'MultiChannelBackbone':
        wrapper = dict(type='MultiChannelBackbone', in_channels=channels)
        config.model.backbone = dict(**wrapper, backbone=backbone)


def _count_iterations(config: Config) -> None:
    """Turns epochs, passes over the unlabelled images of each domain in turn, into iterations."""
    epochs, val_epochs, num_images = (
        config.pop(key, None) for key in ('epochs', 'val_epochs', 'num_images')
    )
    if epochs is None:
        return
    sets = training_sets(config)
    labels = [dataset['num_labeled'] for dataset in sets if dataset.get('num_labeled') is not None]
    if not labels or num_images is None:
        raise UserError(
            f'epochs={epochs}: an epoch is a pass over the unlabelled images; expected num_images '
            'and train_dataloader.dataset.num_labeled, or train_cfg.max_iters in its place'
        )
    batch_size = config.train_dataloader.get('batch_size')
    counts = [('epochs', epochs), ('num_images', num_images)]
    counts += [('train_dataloader.batch_size', batch_size)]
    counts += [('train_dataloader.dataset.num_labeled', number) for number in labels]
    raise_problems(
        Problem(f'{key}={count!r}', '', 'a whole number from 1')
        for key, count in counts
        if type(count) is not int or count < 1
    )
    unlabeled = num_images - max(labels)
    epoch = len(sets) * (unlabeled // batch_size)
    if epoch < 1:
        raise UserError(
            f'train_dataloader.dataset.num_labeled={max(labels)}: leaves {unlabeled} of '
            f'{num_images} images unlabelled; expected at least a batch, or train_cfg.max_iters'
        )
    config.train_cfg.setdefault('max_iters', epochs * epoch)
    config.train_cfg.setdefault('val_interval', (val_epochs or 1) * epoch)


def move_scheduler_ends(config: Config, old_max_iters: int | None) -> None:
    """Moves the end of every scheduler that ended with the training to its new end."""
    new_max_iters = at(config, 'train_cfg.max_iters')
    for scheduler in schedulers(config):
        if scheduler.get('by_epoch', True) or old_max_iters is None:
            continue
        for key in SCHEDULER_ENDS:
            if scheduler.get(key) == old_max_iters:
                scheduler[key] = new_max_iters


def schedulers(config: Config) -> list[Any]:
    """Lists the settings of a config's schedulers, which may be one or a list."""
    found = config.get('param_scheduler') or []
    return found if isinstance(found, list) else [found]


def fill_sizes(config: Config) -> None:
    """Fills in the sizes that pipelines and the preprocessor leave out.

    The config may also be that of a data set alone.
    """
    # prediction and published configs read the top-level pipeline
    for step in _steps(config, *_LOADERS, 'test_pipeline'):
        argument, source = _SIZES[step['type']]
        if not _SET & step.keys() and config.get(source) is not None:
            step[argument] = tuple(config[source])
    preprocessor = at(config, 'model.data_preprocessor') or {}
    is_single = not at(config, 'model.domains')
    if preprocessor.get('type') != 'BranchPreprocessor':
        return
    if is_single and preprocessor.get('size') is None and config.get('crop_size') is not None:
        preprocessor['size'] = tuple(config.crop_size)


def fills(config: Config, name: str) -> bool:
    """Tells whether `image_size` or `crop_size` fills in a size that a pipeline leaves out."""
    return any(
        _SIZES[step['type']][1] == name and not _SET & step.keys()
        for step in _steps(config, *_LOADERS)
    )


def _steps(config: Config, *keys: str) -> Iterator[Any]:
    """Yields the steps of pipelines that take a size, wherever they are below the keys."""
    for key in keys:
        for _, part in settings_of(config.get(key), key):
            kind = part.get('type') if isinstance(part, Mapping) else None
            if isinstance(kind, str) and kind in _SIZES:
                yield part
