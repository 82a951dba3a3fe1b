"""Checks that a model, a data set and a checkpoint mean the same by a class id."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmseg_cct.datasets.checks import leaf_datasets
from mmseg_cct.errors import UserError
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.models.segmentors.multi_domain_cct import domain_named_in_errors


def require_num_classes(model: Any, meta: Mapping[str, Any], key: str) -> None:
    """Checks that a model has an output for each class, of every domain where there are several.

    Args:
        model: A segmentor or a classifier; one whose head tells no number of classes fits.
        meta: Meta information of a data set; without class names it fits.
        key: The data set's key in the config, for the message.

    Raises:
        UserError: It has more outputs or fewer.
    """
    for domain, part, names in _by_domain(model, meta):
        for head in ('decode_head', 'head'):
            num_classes = getattr(getattr(part, head, None), 'num_classes', None)
            # A binary segmentation head may have one output for both of its classes.
            is_binary = head == 'decode_head' and num_classes == 1
            if num_classes is None or is_binary or num_classes == len(names):
                continue
            shown = ', '.join(map(str, names[:4])) + (', ...' if len(names) > 4 else '')
            raise UserError(
                f'model{_place(domain)}.{head}.num_classes={num_classes}: expected {len(names)}, '
                f'the classes of {key}{_place(domain)} ({shown})'
            )


def require_fitting_banks(model: Any, meta: Mapping[str, Any]) -> None:
    """Checks the classes of the auxiliary decoders, in a second domain hours before their turn.

    A `UserError` says if they have another number of classes than the main decoder, or a context
    class is none of the data set's.

    Args:
        model: A segmentor.
        meta: Meta information of the data set that trains it.
    """
    for domain, part, names in _by_domain(model, meta):
        bank = getattr(part, 'auxiliary_head', None)
        if isinstance(bank, PerturbedDecoderBank):
            with domain_named_in_errors(domain):
                bank.check_classes(names, part.out_channels)


def require_heads_ignore(model: Any, dataset: Any, key: str) -> None:
    """Checks that main decoders ignore what the masks that train them mark, as `require_ignored`.

    Args:
        model: A segmentor or a classifier.
        dataset: Its training set; of several domains where the model is.
        key: The data set's key in the config, for the message.
    """
    for name, part in getattr(dataset, 'domains', {None: dataset}).items():
        place = _place(name)
        owner = model if name is None else model.domains[name]
        labeled = getattr(part, 'labeled', None)
        own_key = f'{key}{place}' if labeled is None else f'{key}{place}.labeled'
        head = getattr(owner, 'decode_head', None)
        require_ignored(labeled or part, own_key, head, f'model{place}.decode_head')


def require_ignored(dataset: Any, key: str, part: Any, place: str) -> None:
    """Checks that a head or a metric ignores the label that the masks of a set mark as ignored.

    Args:
        dataset: The set, wrapped, or of several domains. MMSeg's 255 by default fits any part: the
            masks may have no such label.
        key: Its key in the config, for the message.
        part: The head or the metric; one without `ignore_index` fits.
        place: Its key likewise.

    Raises:
        UserError: It ignores another label.
    """
    for name, own in getattr(dataset, 'domains', {}).items():
        require_ignored(own, f'{key}.domains.{name}', part, place)
    ignored = getattr(part, 'ignore_index', None)
    for leaf in leaf_datasets(dataset):
        label = getattr(leaf, 'ignore_index', 255)
        if ignored is not None and label not in (255, ignored):
            raise UserError(
                f'{place}.ignore_index={ignored}: expected {label}, {key}.ignore_index, or its '
                'pixels count'
            )


def require_same_order(
    meta: Mapping[str, Any] | None, other: Mapping[str, Any] | None, name: str
) -> None:
    """Checks that ids mean the same in two sets: their class names are in one order.

    Args:
        meta: Meta information of a data set.
        other: That of another, or of the one that a checkpoint was trained on.
        name: What to call the other, for the message.

    Raises:
        UserError: The names are the same and their order is not.
    """
    meta, other = meta or {}, other or {}
    for domain, part in (meta.get('domains') or {}).items():
        others = (other.get('domains') or {}).get(domain)
        require_same_order(part, others, f'{name}, domain {domain}')
    classes, other_classes = (tuple(m.get('classes') or ()) for m in (meta, other))
    if classes != other_classes and sorted(classes, key=str) == sorted(other_classes, key=str):
        first, was = next((a, b) for a, b in zip(classes, other_classes) if a != b)
        raise UserError(
            f'{name}: class {classes.index(first)} is {was}, in the data set {first}; expected '
            f'the same order of the classes ({", ".join(classes[:8])})'
        )


def _by_domain(
    model: Any, meta: Mapping[str, Any]
) -> Iterator[tuple[str | None, Any, Sequence[str]]]:
    """Yields name, model and class names of each domain; `None` is the name of the only one."""
    domains = meta.get('domains')
    parts = {None: model} if domains is None else dict(getattr(model, 'domains', {}))
    for name, part in parts.items():
        names = (meta if domains is None else domains.get(name, {})).get('classes')
        if names:
            yield name, part, names


def _place(domain: str | None) -> str:
    """What stands between `model` or a data set's key and the settings of a domain."""
    return '' if domain is None else f'.domains.{domain}'
