"""A model, a data set and a checkpoint mean the same by a class id."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmseg_cct.errors import Problem, UserError

from .data import leaf_datasets


def output_problems(model: Any, meta: Mapping[str, Any], key: str) -> Iterator[Problem]:
    """Checks that a model has an output for each class, of every domain if there are several.

    Args:
        model: A segmentor or a classifier; one whose head tells no number of classes fits.
        meta: Meta information of a data set; without class names it fits.
        key: The data set's key in the config.

    Yields:
        A problem for each head that has more outputs or fewer.
    """
    for place, part, names in _by_domain(model, meta):
        for head in ('decode_head', 'head'):
            num_classes = getattr(getattr(part, head, None), 'num_classes', None)
            # A binary segmentation head may have one output for both of its classes.
            is_binary = head == 'decode_head' and num_classes == 1
            if num_classes is None or is_binary or num_classes == len(names):
                continue
            shown = ', '.join(map(str, names[:4])) + (', ...' if len(names) > 4 else '')
            yield Problem(
                f'model{place}.{head}.num_classes={num_classes}',
                '',
                f'{len(names)}, the classes of {key}{place} ({shown})',
            )


def bank_problems(model: Any, meta: Mapping[str, Any]) -> Iterator[UserError]:
    """Checks the classes of the auxiliary decoders, in a second domain hours before their turn.

    Args:
        model: A segmentor.
        meta: Meta information of the data set that trains it.

    Yields:
        A problem if they have another number of classes than the main decoder, or a context class
        is none of the data set's.
    """
    for place, part, names in _by_domain(model, meta):
        bank = getattr(part, 'auxiliary_head', None)
        if hasattr(bank, 'check_classes'):
            try:
                bank.check_classes(names, part.out_channels)
            except UserError as error:  # the bank knows of no domains
                yield UserError(str(error).replace('model.', f'model{place}.', 1))


def head_ignore_problems(model: Any, dataset: Any, key: str) -> Iterator[Problem]:
    """Checks that main decoders ignore what the masks that train them mark as ignored.

    Args:
        model: A segmentor or a classifier.
        dataset: Its training set; of several domains if the model is.
        key: The data set's key in the config.

    Yields:
        The problems of `ignore_problems`.
    """
    for name, part in getattr(dataset, 'domains', {None: dataset}).items():
        place = _place(name)
        owner = model if name is None else model.domains[name]
        labeled = getattr(part, 'labeled', None)
        own_key = f'{key}{place}' if labeled is None else f'{key}{place}.labeled'
        head = getattr(owner, 'decode_head', None)
        yield from ignore_problems(labeled or part, own_key, head, f'model{place}.decode_head')


def ignore_problems(dataset: Any, key: str, part: Any, place: str) -> Iterator[Problem]:
    """Checks that a head or a metric ignores the label that the masks of a set mark as ignored.

    Args:
        dataset: The set, wrapped, or of several domains. MMSeg's 255 by default fits any part: the
            masks may have no such label.
        key: Its key in the config.
        part: The head or the metric; one without `ignore_index` fits.
        place: Its key likewise.

    Yields:
        A problem if it ignores another label.
    """
    domains = getattr(dataset, 'domains', {})
    for name, own in domains.items():
        yield from ignore_problems(own, f'{key}.domains.{name}', part, place)
    ignored = getattr(part, 'ignore_index', None)
    for leaf in () if domains else leaf_datasets(dataset):
        label = getattr(leaf, 'ignore_index', 255)
        if ignored is not None and label not in (255, ignored):
            expected = f'{label}, {key}.ignore_index, or its pixels count'
            yield Problem(f'{place}.ignore_index={ignored}', '', expected)


def order_problems(
    meta: Mapping[str, Any] | None, other: Mapping[str, Any] | None, name: str
) -> Iterator[Problem]:
    """Checks that ids mean the same in two sets: their class names are in one order.

    Args:
        meta: Meta information of a data set.
        other: That of another, or of the one that a checkpoint was trained on.
        name: What to call the other.

    Yields:
        A problem if the names are the same and their order is not.
    """
    meta, other = meta or {}, other or {}
    for domain, part in (meta.get('domains') or {}).items():
        others = (other.get('domains') or {}).get(domain)
        yield from order_problems(part, others, f'{name}, domain {domain}')
    classes, other_classes = (tuple(m.get('classes') or ()) for m in (meta, other))
    if classes != other_classes and sorted(classes, key=str) == sorted(other_classes, key=str):
        first, was = next((a, b) for a, b in zip(classes, other_classes) if a != b)
        yield Problem(
            name,
            f'class {classes.index(first)} is {was}, in the data set {first}',
            f'the same order of the classes ({", ".join(classes[:8])})',
        )


def _by_domain(model: Any, meta: Mapping[str, Any]) -> Iterator[tuple[str, Any, Sequence[str]]]:
    """Yields the place, the model and the class names of each domain."""
    domains = meta.get('domains')
    parts = {None: model} if domains is None else dict(getattr(model, 'domains', {}))
    for name, part in parts.items():
        names = (meta if domains is None else domains.get(name, {})).get('classes')
        if names:
            yield _place(name), part, names


def _place(domain: str | None) -> str:
    """What stands between `model` or a data set's key and the settings of a domain."""
    return '' if domain is None else f'.domains.{domain}'
