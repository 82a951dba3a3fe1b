"""Walks through the settings of a config."""

from collections.abc import Iterator
from typing import Any


def settings_of(part: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    """Finds all settings, dicts and lists among them, each before what it holds.

    Args:
        part: A config, or a part of one.
        key: Dotted key of the part.

    Yields:
        Dotted key and value of each.
    """
    if key:
        yield key, part
    items: Any = ()
    if hasattr(part, 'items'):
        items = part.items()
    elif isinstance(part, (list, tuple)):
        items = enumerate(part)
    for name, value in items:
        yield from settings_of(value, f'{key}.{name}' if key else str(name))


def at(part: Any, key: str, default: Any = None) -> Any:
    """Finds a setting by its dotted key."""
    for name in key.split('.'):
        if isinstance(part, (list, tuple)) and name.isdigit() and int(name) < len(part):
            part = part[int(name)]
        elif hasattr(part, 'keys') and name in part:
            part = part[name]
        else:
            return default
    return part


def changed_settings(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """Compares two configs; a tuple is as good as a list of the same.

    Args:
        before: A config.
        after: Another one.

    Returns:
        Dotted key and both values of each setting that differs, 'none' where there is none; sorted.
    """
    old, new = dict(leaves(before)), dict(leaves(after))
    return [
        (key, old.get(key, 'none'), new.get(key, 'none'))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def leaves(part: Any) -> Iterator[tuple[str, Any]]:
    """Finds the settings that hold no others; tuples are given as lists."""
    for key, value in settings_of(part):
        value = list(value) if isinstance(value, tuple) else value
        if not (isinstance(value, (dict, list)) and value):
            yield key, value


def forget_initial_weights(part: Any) -> None:
    """Takes from all modules the weights that they would start from, for others are loaded.

    Args:
        part: A config, or a part of one; changed in place.
    """
    for _, module in settings_of(part, 'config'):
        if isinstance(module, dict):
            if str(module.get('type')).endswith('TimmViT'):  # whose default is timm's weights
                module.setdefault('pretrained', True)
            for key in {'init_cfg', 'pretrained'} & module.keys():
                module[key] = False if module[key] is True else None
