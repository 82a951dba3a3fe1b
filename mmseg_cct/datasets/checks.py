"""Validates data sets before a run starts."""

import functools
import itertools
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mmcv.transforms import LoadAnnotations, LoadImageFromFile, Pad
from mmengine import fileio
from mmengine.dataset import BaseDataset
from mmengine.logging import print_log
from mmseg.datasets.transforms import RandomRotate, RandomRotFlip

from mmseg_cct.datasets.transforms.pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from mmseg_cct.datasets.transforms.valid_pixels import MarkValidPixels, PackUnlabeledInputs
from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import read_mask
from mmseg_cct.utils.shares import on_first_process

from .image_checks import image_size

# A waiting task of a thread pool takes 1.7 KiB: gigabytes for a million files.
_FILES_AT_ONCE = 4096


def check_datasets(labeled: BaseDataset, unlabeled: BaseDataset | None = None) -> None:
    """Validates the data of a training.

    Decodes labelled images, masks and pseudo labels in full. Of unlabelled images it reads the
    header and the last bytes; their masks it never opens. A `UserError` names the first file that
    is missing, unreadable, of the wrong size, or has an unknown label id; or it says that no
    labelled pixel teaches anything. In a distributed run only rank 0 reads files; every rank raises
    its error.

    Args:
        labeled: The labelled set.
        unlabeled: The unlabelled set, if any.
    """

    def look() -> None:
        _check_labels(_check_all(_check_labeled_image, labeled), labeled)
        if unlabeled is not None:
            # the set of the unlabelled images may name no classes
            num_classes = len(labeled.metainfo['classes'])
            check = functools.partial(_check_unlabeled_image, num_classes=num_classes)
            _check_all(check, unlabeled)
            _warn_of_common_images(labeled, unlabeled)

    on_first_process(look)


def check_evaluation_data(dataset: Any, key: str) -> None:
    """Validates evaluation data on rank 0 and re-raises its error on every rank.

    Args:
        dataset: The set, wrapped or not.
        key: Its key in the config, for the message.
    """
    on_first_process(lambda: look_at_evaluation_data(dataset, key))


def look_at_evaluation_data(dataset: Any, key: str) -> None:
    """Validates evaluation data on this rank.

    Decodes images and masks in full; of images without masks it reads the header and the end.

    Args:
        dataset: The set, wrapped or not.
        key: Its key in the config, for the message.

    Raises:
        UserError: If a file is missing, unreadable, of the wrong size, or has an unknown label id.
    """
    try:
        for leaf in leaf_datasets(dataset):
            transforms = _flatten(getattr(leaf, 'pipeline', None))
            has_masks = any(isinstance(part, LoadAnnotations) for part in transforms)
            _check_all(_check_labeled_image if has_masks else _check_unlabeled_image, leaf)
    except UserError as error:
        raise UserError(f'{key}: {error}') from None


def check_unlabeled_pipeline(dataset: Any) -> None:
    """Checks that the unlabelled set needs no masks and packs what it marks.

    Logs a warning where a transform fills pixels that nothing marks.

    Args:
        dataset: The unlabelled set.

    Raises:
        UserError: If a transform needs masks, or marked pixels are not packed.
    """
    for leaf in leaf_datasets(dataset):
        for transform in _flatten(leaf.pipeline):
            name = type(transform).__name__
            if isinstance(transform, LoadAnnotations):
                raise UserError(
                    f'unlabeled.pipeline: {name} reads masks; expected a pipeline without it, for '
                    'an unlabelled image has none'
                )
            if getattr(transform, 'cat_max_ratio', 1.0) < 1.0:
                raise UserError(
                    f'unlabeled.pipeline: {name}(cat_max_ratio={transform.cat_max_ratio}) looks at '
                    'the mask; expected cat_max_ratio=1.0, for an unlabelled image has none'
                )
        _check_marks(list(_flatten(leaf.pipeline)))


def _check_marks(transforms: list[Any]) -> None:
    def first(*kinds: type) -> str | None:
        return next((type(part).__name__ for part in transforms if isinstance(part, kinds)), None)

    labels, marks = first(LoadPseudoLabels), first(MarkValidPixels)
    fills = first(Pad, RandomRotate, RandomRotFlip)
    if labels and first(PackUnlabeledInputs):
        raise UserError(
            'unlabeled.pipeline: LoadPseudoLabels with PackUnlabeledInputs; expected '
            'PackPseudoLabels at the end'
        )
    if marks and not first(PackUnlabeledInputs, PackPseudoLabels):
        raise UserError(
            'unlabeled.pipeline: MarkValidPixels with PackSegInputs; expected PackUnlabeledInputs '
            'at the end'
        )
    if fills and not marks and not labels:
        print_log(
            f'unlabeled.pipeline: {fills} fills pixels, and the losses count them; expected '
            'MarkValidPixels after the loading and PackUnlabeledInputs at the end',
            logger='current',
            level=logging.WARNING,
        )


def leaf_datasets(dataset: Any) -> list[BaseDataset]:
    """Unwraps mmengine's `ConcatDataset`, `RepeatDataset` and their like.

    Args:
        dataset: A data set, wrapped or not.

    Returns:
        The sets inside, in order.
    """
    if hasattr(dataset, 'datasets'):
        return [leaf for part in dataset.datasets for leaf in leaf_datasets(part)]
    if hasattr(dataset, 'dataset'):
        return leaf_datasets(dataset.dataset)
    return [dataset]


def unknown_ids(
    ids: np.ndarray,
    num_classes: int,
    label_map: Mapping[int, int] | None = None,
    reduce_zero_label: bool = False,
    ignore_index: int = 255,
) -> list[int]:
    """Finds the ids of a mask that are neither a class nor ignored, after MMSeg's mappings.

    Args:
        ids: ``(H, W)`` of integers or bools, as they are in the file.
        num_classes: Number of classes ``C``.
        label_map: Class id by id in the file; ids that are missing stay as they are.
        reduce_zero_label: Whether 0 is ignored and all other ids move down by 1.
        ignore_index: Id of pixels that do not count.

    Returns:
        The offending ids as they are in the file, ascending.
    """
    label_of = label_of_each_id(ids, label_map, reduce_zero_label)
    return _unknown(label_of, num_classes, ignore_index)


def label_of_each_id(
    ids: np.ndarray, label_map: Mapping[int, int] | None = None, reduce_zero_label: bool = False
) -> dict[int, int]:
    """Maps the ids of a mask as MMSeg does.

    Args:
        ids: As in `unknown_ids`.
        label_map: As in `unknown_ids`.
        reduce_zero_label: As in `unknown_ids`.

    Returns:
        The label by id in the file, ascending.
    """
    if ids.dtype in (np.uint8, np.bool_):
        present = np.flatnonzero(np.bincount(ids.reshape(-1), minlength=256))
    else:
        present = np.unique(ids)
    labels = {}
    for raw in present.tolist():
        label = raw
        if reduce_zero_label and raw <= 255:
            label = 255 if raw in (0, 255) else raw - 1
        labels[raw] = (label_map or {}).get(label, label)
    return labels


def _unknown(label_of: Mapping[int, int], num_classes: int, ignore_index: int) -> list[int]:
    return [
        raw
        for raw, label in label_of.items()
        if not (0 <= label < num_classes or label == ignore_index)
    ]


def _check_all(check: Callable[..., Any], dataset: Any) -> Counter:
    """Counts what the check returns of the files."""
    found: Counter = Counter()
    for leaf in leaf_datasets(dataset):
        with ThreadPoolExecutor(min(16, (os.cpu_count() or 1) + 4)) as pool:
            infos = _infos(leaf)
            while some := list(itertools.islice(infos, _FILES_AT_ONCE)):
                # The results come in order, so the first bad file of the list is the one reported.
                found.update(pool.map(functools.partial(check, dataset=leaf), some))
    return found


def _check_labels(found: Counter, dataset: Any) -> None:
    found.pop(None, None)  # drawn images
    leaf = leaf_datasets(dataset)[0]
    mapped = getattr(leaf, 'reduce_zero_label', False) or getattr(leaf, 'label_map', None)
    ignored = getattr(leaf, 'ignore_index', 255)
    for line in judge_labels(found, leaf.metainfo['classes'], 'labeled', ignored, bool(mapped)):
        _warn(line)


def judge_labels(
    found: Mapping[frozenset[int], int],
    classes: Sequence[str],
    name: str,
    ignored: int = 255,
    is_mapped: bool = False,
) -> list[str]:
    """Judges a labelled set as a whole by the labels of its masks.

    Args:
        found: Number of masks by the labels in them, after MMSeg's mappings.
        classes: Names of the classes.
        name: What to call the set.
        ignored: Label of pixels that do not count.
        is_mapped: Whether the files hold other ids than the labels.

    Returns:
        Warnings, a line each.

    Raises:
        UserError: No pixel is labelled, or two classes are 0 and 255.
    """
    total, warnings = sum(found.values()), []
    if not total:
        return []
    void = sum(number for labels, number in found.items() if labels <= {ignored})
    if void == total:
        raise UserError(
            f'{name}: all {total} masks are {ignored} (ignored) alone; expected class ids from 0 '
            f'to {len(classes) - 1}'
        )
    there = frozenset().union(*found)
    if len(classes) > 1 and there == {0, 255} and not is_mapped:
        line = f'{name}: the {total} masks hold 0 and 255 alone, and 255 is ignored, so that '
        if len(classes) == 2:
            raise UserError(
                f'{line}{classes[1]} never occurs; expected 0 for {classes[0]} and 1 for '
                f'{classes[1]} (replace 255 by 1)'
            )
        warnings.append(
            f'{line}{classes[0]} alone occurs; expected ids from 0 to {len(classes) - 1} (replace '
            '255 by the id of its class, if it is one)'
        )
    if void:
        warnings.append(
            f'{name}: {void} of {total} masks are {ignored} (ignored) alone; expected a labelled '
            'pixel in each'
        )
    absent = [str(name) for index, name in enumerate(classes) if index not in there]
    if absent:
        warnings.append(
            f'{name}: {", ".join(absent[:5])}{" and more" if len(absent) > 5 else ""} '
            f'({len(absent)} of {len(classes)} classes) in none of the {total} masks; expected '
            'each class in one'
        )
    return warnings


def _warn(message: str) -> None:
    print_log(message, logger='current', level=logging.WARNING)


def _check_labeled_image(info: Mapping[str, Any], dataset: BaseDataset) -> frozenset[int] | None:
    """Checks a pair and returns the label ids of its mask, `None` where the image is drawn."""
    if not _is_file(info):
        return None
    image, mask = info['img_path'], info.get('seg_map_path')
    if mask is None:
        raise UserError(
            f'{image}: no mask is named for this labelled image; expected a data set with '
            'data_prefix.seg_map_path'
        )
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(image, backend_args, True, image_loader(dataset))
    if '://' not in mask and not fileio.exists(mask, backend_args):
        raise UserError(f'{image}: no mask for this labelled image; expected {mask}')
    labels = check_mask(info, size, dataset)
    if min(size) < 2:
        raise UserError(
            f'{mask}: {size[0]}×{size[1]} pixels; expected 2 or more on each side, for MMSeg drops '
            'a side of 1 from a mask'
        )
    return labels


def check_mask(info: Mapping[str, Any], size: tuple[int, int], dataset: Any) -> frozenset[int]:
    """Checks a mask.

    Args:
        info: Data info of its image.
        size: Width and height of the image.
        dataset: The set, whose classes they are.

    Returns:
        The label ids in the mask, after MMSeg's mappings.

    Raises:
        UserError: It cannot be read, has another size, or an unknown label id.
    """
    mask = info['seg_map_path']
    ids = read_mask(mask, getattr(dataset, 'backend_args', None))
    if ids.shape != size[::-1]:
        raise UserError(
            f'{mask}: {ids.shape[1]}×{ids.shape[0]} pixels; expected {size[0]}×{size[1]}, the size '
            f'of its image {info["img_path"]}'
        )
    num_classes = len(dataset.metainfo['classes'])
    ignore_index = getattr(dataset, 'ignore_index', 255)
    label_of = label_of_each_id(ids, info.get('label_map'), info.get('reduce_zero_label', False))
    unknown = _unknown(label_of, num_classes, ignore_index)
    if unknown:
        raise UserError(
            f'{mask}: label id {", ".join(map(str, unknown[:5]))}'
            f'{" and more" if len(unknown) > 5 else ""} outside the classes; expected 0 to '
            f'{num_classes - 1}, or {ignore_index} where ignored'
            f'{", after label_map or reduce_zero_label" if _is_mapped(info) else ""}'
        )
    return frozenset(label_of.values())


def _check_unlabeled_image(
    info: Mapping[str, Any], dataset: BaseDataset, num_classes: int = 255
) -> None:
    if not _is_file(info):
        return
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(info['img_path'], backend_args, False, image_loader(dataset))
    for transform in _flatten(dataset.pipeline):
        if isinstance(transform, LoadPseudoLabels):
            _check_pseudo_labels(transform, info, size, num_classes)


def _check_pseudo_labels(
    transform: LoadPseudoLabels,
    info: Mapping[str, Any],
    size: tuple[int, int],
    num_classes: int,
) -> None:
    labels = transform.read(dict(info, ori_shape=size[::-1]))
    unknown = unknown_ids(labels, num_classes)
    if unknown:
        raise UserError(
            f'{transform.path_of(info["img_path"])}: label id {unknown[0]} outside the classes; '
            f'expected 0 to {num_classes - 1}, or 255 where there is none'
        )


def image_loader(dataset: Any) -> LoadImageFromFile | None:
    """Finds the transform that loads the images of a data set.

    Args:
        dataset: The set, which wraps no other.

    Returns:
        The transform; `None` where there is none.
    """
    transforms = _flatten(getattr(dataset, 'pipeline', None))
    return next((part for part in transforms if isinstance(part, LoadImageFromFile)), None)


def _warn_of_common_images(labeled: Any, unlabeled: Any) -> None:
    drawn = {_identity(info) for leaf in leaf_datasets(labeled) for info in _infos(leaf)} - {None}
    common = [
        info['img_path']
        for leaf in leaf_datasets(unlabeled)
        for info in _infos(leaf)
        if _identity(info) in drawn
    ]
    if common:
        print_log(
            f'{len(common)} images are both labelled and unlabelled, the first is {common[0]}; '
            'expected two sets without a common image',
            logger='current',
            level=logging.WARNING,
        )


def _infos(dataset: BaseDataset) -> Iterator[dict]:
    return (dataset.get_data_info(index) for index in range(len(dataset)))


def _is_file(info: Mapping[str, Any]) -> bool:
    # Sets that draw their images, like ShapesDataset, name no file.
    return info.get('img_path') is not None


def _is_mapped(info: Mapping[str, Any]) -> bool:
    return bool(info.get('label_map') or info.get('reduce_zero_label'))


def _identity(info: Mapping[str, Any]) -> str | None:
    return os.path.abspath(info['img_path']) if _is_file(info) else None


def _flatten(transform: Any) -> Iterator[Any]:
    # RandomApply, RandomChoice and their like keep theirs in `transforms` too.
    if isinstance(transform, (list, tuple)):
        for part in transform:
            yield from _flatten(part)
    else:
        yield transform
        yield from _flatten(getattr(transform, 'transforms', ()))
