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
