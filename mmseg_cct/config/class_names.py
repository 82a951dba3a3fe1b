"""Class names of a config, given once at its top level."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from mmseg_cct.errors import UserError
from mmseg_cct.utils.suggest import nearest
from mmseg_cct.utils.text import is_unicode

_SPLITS = ('train', 'val', 'test')
# Where a wrapper keeps its inner sets: those of mmengine, and SemiSegDataset.
_INNER_SETS = ('dataset', 'datasets', 'labeled', 'unlabeled')


def apply_class_names(config: Config) -> None:
    """Passes the top-level `classes` and `context_classes` on to data sets and heads.

    The metrics read the class names from the data set. A model of several domains names its classes
    by domain and is left alone. A data set with other names, or a context class that is not among
    the classes, is a `UserError`.
    """
    model = config.get('model') or {}
    if model.get('domains'):
        return
    classes = config.get('classes')
    if classes is not None:
        check_classes(classes)
        classes = tuple(classes)
        if _name_in_data_sets(config, classes):
            for head in _heads(model):
                # A binary head may have one output for both of its classes.
                if head.get('num_classes') != 1:
                    head['num_classes'] = len(classes)
            if 'num_classes' in config:  # the variable that has filled the heads
                config['num_classes'] = len(classes)
    elif own := next((names for *_, names in _named_sets(config) if names), None):
        for head in _heads(model):
            if 'num_classes' in head and head['num_classes'] is None:
                head['num_classes'] = len(own)
    context = config.get('context_classes')
    if context is not None:
        if not _is_list(context) or not all(isinstance(name, (str, int)) for name in context):
            raise UserError(
                f'context_classes={context!r}: expected a list, also of one class, such as '
                '[background]'
            )
        for name in context:
            if classes is not None and isinstance(name, str) and name not in classes:
                raise UserError(f'context_classes: no class {name!r}; {nearest(name, classes)}')
        for head in _heads(model):
            if head.get('type') == 'PerturbedDecoderBank':
                head['context_classes'] = tuple(context)


def check_classes(classes: Any) -> None:
    """Checks that `classes` are 2 to 255 different names; with one class the loss would be 0."""
    check_names(classes, 'classes')
    if len(classes) < 2:
        raise UserError(
            f'classes={tuple(classes)}: expected two names or more, that of the background too'
        )
    if len(classes) > 255:
        raise UserError(
            f'classes={_shown(classes)}: {len(classes)} names; expected at most 255: MMSeg reads '
            'masks in 8 bits, and 255 is ignored'
        )


def check_names(names: Any, key: str) -> None:
    """Checks that names are a list without repetition; `key` is the setting or option."""
    if not _is_list(names) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f'{key}={names!r}: expected the class names in the order of their ids')
    for name in names:
        if not is_unicode(name):  # OpenCV would end the process
            raise UserError(f'{key}: {name!a} is not text; expected names in UTF-8')
    if len(set(names)) < len(names):
        raise UserError(f'{key}={tuple(names)}: expected every name once')


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _named_sets(config: Config) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields key, settings, class and own class names of each segmentation set in the config."""
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        for split in _SPLITS:
            dataset = (config.get(f'{split}_dataloader') or {}).get('dataset')
            for key, leaf in leaf_sets(dataset, f'{split}_dataloader.dataset'):
                kind = leaf.get('type')
                kind = DATASETS.get(kind) if isinstance(kind, str) else kind
                if inspect.isclass(kind) and issubclass(kind, BaseSegDataset):
                    own = leaf.get('classes') or (leaf.get('metainfo') or {}).get('classes')
                    yield key, leaf, kind, own or getattr(kind, 'METAINFO', {}).get('classes')


def _name_in_data_sets(config: Config, classes: tuple[str, ...]) -> bool:
    """Sets the classes of all segmentation sets that have none; returns whether there is a set."""
    found = False
    for key, dataset, kind, own in _named_sets(config):
        found = True
        if own and tuple(own) != classes:
            raise UserError(
                f'classes={_shown(classes)}: {key} ({kind.__name__}) has {_shown(own)}; expected '
                'the same names in the same order'
            )
        if own:
            continue
        if 'classes' in inspect.signature(kind).parameters:  # FolderDataset
            dataset['classes'] = classes
        else:
            dataset['metainfo'] = {**(dataset.get('metainfo') or {}), 'classes': classes}
    return found


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


def _heads(model: Any) -> list[Any]:
    heads: list[Any] = []
    for name in ('decode_head', 'auxiliary_head'):
        head = model.get(name)
        heads += head if isinstance(head, (list, tuple)) else [head]
    return [head for head in heads if isinstance(head, Mapping)]


def _shown(names: Sequence[str]) -> str:
    return f'({", ".join(names[:4])}{", ..." if len(names) > 4 else ""})'
