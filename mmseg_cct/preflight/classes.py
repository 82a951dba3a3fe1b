"""Checks that class ids mean the same in a model, a data set and a checkpoint.

`meta` is the meta information of a data set, `key` its dotted key in the config.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from torch.nn import ModuleList

from mmseg_cct.config.walk import sets_by_domain
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import Problem
from mmseg_cct.utils.log import warn

Meta = Mapping[str, Any]


def output_problems(model: Any, meta: Meta, key: str) -> Iterator[Problem]:
    """Checks that a model has an output for each class; without class names any model fits."""
    for subkey, part, names in _by_domain(model, meta):
        for head in ('decode_head', 'auxiliary_head', 'head'):
            num_classes = getattr(getattr(part, head, None), 'num_classes', None)
            # A binary segmentation head may have one output for both of its classes.
            is_binary = head == 'decode_head' and num_classes == 1
            if num_classes is not None and not is_binary and num_classes != len(names):
                shown = ', '.join(map(str, names[:4])) + (', ...' if len(names) > 4 else '')
                expected = f'{len(names)}, the classes of {key}{subkey} ({shown})'
                yield Problem(f'model{subkey}.{head}.num_classes={num_classes}', '', expected)


def head_ignore_problems(model: Any, dataset: Any) -> Iterator[Problem]:
    """Checks that main decoders ignore 255 and no class.

    Logs a warning if they learn a class from the padding.
    """
    for name, part in sets_by_domain(dataset).items():
        subkey, owner = '', model
        preprocessor: Any = getattr(model, 'data_preprocessor', None)
        if name is not None:
            subkey, owner = f'.domains.{name}', model.domains[name]
            preprocessor = getattr(preprocessor, 'domains', {name: None})[name]
        head: Any = getattr(owner, 'decode_head', None)
        yield from ignore_problems(head, f'model{subkey}.decode_head')
        labeled = getattr(part, 'labeled', part)
        classes = (getattr(labeled, 'metainfo', None) or {}).get('classes') or ()
        ignored: Any = getattr(head, 'ignore_index', None)
        padded: Any = getattr(preprocessor, 'seg_pad_val', None)
        # a label that is no class is an error of the loss
        if None not in (ignored, padded) and padded != ignored and 0 <= padded < len(classes):
            key = f'model{subkey}.data_preprocessor.seg_pad_val={padded}'
            mistake = f'padding counts as class {classes[padded]}'
            warn(f'{key}: {mistake}; expected {ignored}, the ignored label')


def warn_of_losses_that_count_ignored_pixels(model: Any) -> None:
    """Warns of losses, such as MMSeg's DiceLoss, by which ignored pixels train the network.

    Padding is ignored too, so this concerns also masks without ignored pixels.
    """
    for name, head in model.named_modules():
        losses = getattr(head, 'loss_decode', None)  # K-Net's head of heads has none
        if not isinstance(head, BaseDecodeHead) or head.out_channels < 2 or losses is None:
            continue
        for loss in losses if isinstance(losses, ModuleList) else [losses]:
            logits = torch.arange(4.0 * head.out_channels).sin().view(1, -1, 2, 2).requires_grad_()
            truth = torch.tensor([[[0, 1], [head.ignore_index, head.ignore_index]]])
            with torch.random.fork_rng(), torch.enable_grad(), suppress(Exception):
                loss(logits, truth, ignore_index=head.ignore_index).sum().backward()
            if logits.grad is not None and logits.grad[..., 1, :].any():
                learns = f'{type(loss).__name__} also learns from ignored pixels'
                expected = f'({head.ignore_index}); expected one that leaves them out: BatchLovasz'
                warn(f'model.{name}.loss_decode: {learns} {expected}')


def ignore_problems(part: Any, key: str) -> Iterator[Problem]:
    """Checks that a head or a metric ignores 255, the label of ignored pixels in every set."""
    ignored = getattr(part, 'ignore_index', None)
    if ignored not in (None, IGNORE_INDEX):
        # a head would never learn an ignored class; a metric would count no false positive on it
        masks = 'another label in masks is FolderDataset.ignore_index'
        expected = f'{IGNORE_INDEX}; {masks}, the IoU of one class is the metric IoU.NAME'
        yield Problem(f'{key}.ignore_index={ignored}', '', expected)


def order_problems(meta: Meta | None, second: Meta | None, name: str) -> Iterator[Problem]:
    """Checks that two sets, or a set and a checkpoint, have their classes in the same order."""
    meta, second = meta or {}, second or {}
    for domain, part in (meta.get('domains') or {}).items():
        second_part = (second.get('domains') or {}).get(domain)
        yield from order_problems(part, second_part, f'{name}, domain {domain}')
    classes, second_classes = (tuple(m.get('classes') or ()) for m in (meta, second))
    if classes != second_classes and sorted(classes, key=str) == sorted(second_classes, key=str):
        index = next(i for i, (a, b) in enumerate(zip(classes, second_classes)) if a != b)
        mistake = f'class {index} is {second_classes[index]}, in the data set {classes[index]}'
        expected = f'the same order of the classes ({", ".join(classes[:8])})'
        yield Problem(name, mistake, expected)


def _by_domain(model: Any, meta: Meta) -> Iterator[tuple[str, Any, Sequence[str]]]:
    """Yields each domain's model and classes, and where it is below `model` or a set's key."""
    domains = meta.get('domains')
    parts = {None: model} if domains is None else dict(getattr(model, 'domains', {}))
    for name, part in parts.items():
        names = (meta if domains is None else domains.get(name, {})).get('classes')
        if names:
            yield '' if name is None else f'.domains.{name}', part, names
