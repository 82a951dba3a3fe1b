"""Walks through the settings of a config."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Where a wrapper keeps its inner sets: those of mmengine, and SemiSegDataset.
_INNER_SETS = ('dataset', 'datasets', 'labeled', 'unlabeled')


def settings_of(part: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    """Yields dotted key and value of all settings at and below `key`, outer ones first."""
    if key:
        yield key, part
    items: Any = ()
    if hasattr(part, 'items'):
        items = part.items()
    elif isinstance(part, (list, tuple)):
        items = enumerate(part)
    for name, value in items:
        yield from settings_of(value, f'{key}.{name}' if key else str(name))


def get_by_key(part: Any, key: str, default: Any = None) -> Any:
    """Finds a setting by its dotted key; returns `default` if it is missing."""
    for name in key.split('.'):
        if isinstance(part, (list, tuple)) and name.isdigit() and int(name) < len(part):
            part = part[int(name)]
        elif hasattr(part, 'keys') and name in part:
            part = part[name]
        else:
            return default
    return part


def as_list(part: Any) -> list[Any]:
    """Lists the parts of a setting that may be one, several or None; they are not copied."""
    return [] if part is None else list(part) if isinstance(part, (list, tuple)) else [part]


def changed_settings(before: Any, after: Any, missing: str = 'none') -> list[tuple[str, Any, Any]]:
    """Lists dotted key, old value and new value of each setting that differs, sorted by key.

    A missing value is `missing`. A tuple equals a list of the same values.
    """
    old, new = dict(leaves(before)), dict(leaves(after))
    changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return [(key, old.get(key, missing), new.get(key, missing)) for key in changed]


def leaves(part: Any) -> Iterator[tuple[str, Any]]:
    """Yields the settings that hold no others; tuples become lists."""
    for key, value in settings_of(part):
        value = list(value) if isinstance(value, tuple) else value
        if not (isinstance(value, (dict, list)) and value):
            yield key, value


def forget_initial_weights(part: Any) -> None:
    """Removes the initial weights of all modules of a config, in place; others will be loaded."""
    for _, module in settings_of(part, 'config'):
        if isinstance(module, dict):
            # their default is timm's weights
            if str(module.get('type')).endswith(('TimmViT', 'TIMMBackbone')):
                module.setdefault('pretrained', True)
            for key in {'init_cfg', 'pretrained'} & module.keys():
                module[key] = False if module[key] is True else None


def leaf_sets(dataset: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    """Yields the dotted key and the settings of each set that wraps no other."""
    if isinstance(dataset, Sequence) and not isinstance(dataset, str):
        for index, part in enumerate(dataset):
            yield from leaf_sets(part, f'{key}.{index}')
    elif isinstance(dataset, Mapping):
        inner = [name for name in _INNER_SETS if dataset.get(name)]
        if not inner:
            yield key, dataset
        for name in inner:
            yield from leaf_sets(dataset[name], f'{key}.{name}')


def sets_by_domain(dataset: Any) -> dict[str | None, Any]:
    """Returns the set of each domain by its name, or a set without domains by None.

    `dataset` are the `ConfigDict` of a set, or the built one.
    """
    return dict(getattr(dataset, 'domains', None) or {None: dataset})
