"""Checks the files of data sets, and the pipelines that load them.

Every labelled and validation mask is decoded once, at the start of a run.
"""

import copy
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from mmcv import transforms as mmcv_transforms
from mmcv.transforms import LoadAnnotations
from mmengine import fileio
from mmseg.datasets import transforms as mmseg_transforms
from mmseg.registry import DATASETS

from mmseg_cct.config.walk import sets_by_domain
from mmseg_cct.datasets.files.images import IdOfColor, image_size, read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_mask, judge_labels
from mmseg_cct.datasets.files.leaks import describe_leaks
from mmseg_cct.datasets.leaves import (
    image_loader,
    image_paths,
    infos_of,
    leaf_datasets,
    transforms_of,
)
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.transforms import LoadPseudoLabels, MarkValidPixels, PackUnlabeledInputs
from mmseg_cct.datasets.transforms.weak_masks import LoadWeakMasks
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import ahead, on_first_process
from mmseg_cct.utils.text import one_line

_FILLING = (mmcv_transforms.Pad, mmseg_transforms.RandomRotate, mmseg_transforms.RandomRotFlip)
# MMSeg undoes resizing and flips on a prediction, and none of these
_NOT_UNDONE = (*_FILLING, mmseg_transforms.RandomCrop, mmcv_transforms.CenterCrop)
_MOVING = (
    *_NOT_UNDONE,
    mmcv_transforms.RandomFlip,
    mmcv_transforms.Resize,
    mmcv_transforms.RandomResize,
    mmcv_transforms.RandomChoiceResize,
    mmseg_transforms.ResizeToMultiple,
)
_WAITING = 64  # files that are read ahead

Info = Mapping[str, Any]  # mmengine's of an image
LabelSets = Counter[frozenset[int]]  # number of masks by their labels


def check_pairs(pairs: SemiSegDataset) -> None:
    """Validates the pipelines, images and masks of a training.

    Decodes labelled images, masks and pseudo labels in full. Of unlabelled images it reads only the
    header and the last bytes, and it never opens their masks. In a distributed run only rank 0
    reads files; every rank raises its error.
    """
    labeled, unlabeled = pairs.labeled, pairs.unlabeled

    def check() -> None:
        raise_problems(_pipeline_problems(labeled, unlabeled))
        _warn_of_fillings(labeled, unlabeled)
        label_sets, weak_sets = LabelSets(), LabelSets()
        check_pair = functools.partial(_check_labeled_image, id_of_color={})
        problems = _problems_of_files(check_pair, labeled, label_sets)
        if unlabeled is not None:
            # the unlabelled set may have no class names
            num_classes = len(labeled.metainfo['classes'])
            check_image = functools.partial(
                _check_unlabeled_image, num_classes=num_classes, id_of_color={}
            )
            problems = chain(problems, _problems_of_files(check_image, unlabeled, weak_sets))
        raise_problems(problems)
        if pairs.weak_masks is not None and unlabeled is not None and not weak_sets:
            expected = 'a/b.png for the image a/b.jpg'
            raise UserError(pairs.weak_masks, 'no mask of an unlabelled image', expected)
        leaf = leaf_datasets(labeled)[0]
        mapped = getattr(leaf, 'reduce_zero_label', False) or getattr(leaf, 'label_map', None)
        classes = leaf.metainfo['classes']
        lines = judge_labels(label_sets, classes, 'labeled', bool(mapped))
        if weak_sets:
            steps = transforms_of(leaf_datasets(unlabeled)[0])
            loader = next(step for step in steps if isinstance(step, LoadWeakMasks))
            mapped, dirs = loader.names != [*classes], (loader.image_dir, loader.label_dir)
            lines = chain(lines, judge_labels(weak_sets, classes, 'weak_masks', mapped, dirs))
        for line in lines:
            warn(line)

    on_first_process(check)


def build_evaluation_set(settings: Any, key: str) -> Any:
    """Builds a set at a `key` of the config, and validates its files as before a test."""
    try:
        dataset = DATASETS.build(copy.deepcopy(settings))
        dataset.full_init()
    except UserError as error:
        raise error.within(key) from None
    except (AssertionError, OSError, ValueError) as error:
        raise UserError(key, one_line(error), 'a data set there') from error
    check_evaluation_data(dataset, key)
    return dataset


def check_evaluation_data(dataset: Any, key: str) -> list[str]:
    """Validates evaluation data on this process, and names the classes that no mask shows.

    Decodes images and masks in full. Of images without masks it reads only the header and the end.
    """
    by_classes: dict[tuple[str, ...], LabelSets] = {}
    check_pair = functools.partial(_check_labeled_image, id_of_color={})
    try:
        for leaf in leaf_datasets(dataset):
            has_masks = _has(leaf, LoadAnnotations)
            if has_masks:
                raise_problems(_moving_problems(leaf, _NOT_UNDONE, 'pipeline'))
            check = check_pair if has_masks else _check_unlabeled_image
            classes = tuple((getattr(leaf, 'metainfo', None) or {}).get('classes') or ())
            counter = by_classes.setdefault(classes, Counter())
            raise_problems(_problems_of_files(check, leaf, counter))
    except UserError as error:
        raise error.within(key) from None
    label_sets = sum(by_classes.values(), Counter())
    # a test set whose predictions are submitted elsewhere may have void masks
    if label_sets and key.startswith('val') and {*chain(*label_sets)} <= {IGNORE_INDEX}:
        void = f'all {label_sets.total()} masks hold only ignored pixels'
        raise UserError(key, void, 'labelled pixels to validate on')
    absent = []
    for names, counter in by_classes.items():
        ids = {*chain(*counter)}
        absent += [name for index, name in enumerate(names) if ids and index not in ids]
    return absent


def _problems_of_files(
    check: Callable[..., frozenset[int] | None], dataset: Any, label_sets: LabelSets
) -> Iterator[UserError]:
    """Yields the errors that the check raises for files, and counts its results for the others."""

    def outcome(info: Info, leaf: Any) -> Any:
        try:
            return check(info, leaf)
        except UserError as error:
            return error

    for leaf in leaf_datasets(dataset):
        files = (info for info in infos_of(leaf) if info.get('img_path') is not None)
        # in the order of the list
        for result in ahead(functools.partial(outcome, leaf=leaf), files, _WAITING):
            if isinstance(result, UserError):
                yield result
            elif result is not None:
                label_sets[result] += 1


def _check_labeled_image(info: Info, dataset: Any, id_of_color: IdOfColor) -> frozenset[int]:
    """Decodes an image and its mask; returns the labels in the mask."""
    image, mask = info['img_path'], info.get('seg_map_path')
    if mask is None:
        raise UserError(image, 'no mask is named for it', 'data_prefix.seg_map_path')
    backend_args, loader = getattr(dataset, 'backend_args', None), image_loader(dataset)
    size = image_size(image, backend_args, True, loader)
    if '://' not in mask and not fileio.exists(mask, backend_args):
        raise UserError(image, 'no mask for this labelled image', mask)
    if 1 in size:  # `LoadAnnotations` drops a side of one pixel
        raise UserError(image, f'{size[0]}×{size[1]} pixels with a mask', 'two or more a side')
    ids = read_mask(mask, backend_args, id_of_color)
    mapping = {key: info[key] for key in ('label_map', 'reduce_zero_label') if key in info}
    num_classes = len(dataset.metainfo['classes'])
    labels = check_mask(mask, ids, num_classes, image=image, size=size, **mapping)
    return frozenset(labels.values())


def _check_unlabeled_image(
    info: Info, dataset: Any, num_classes: int = 255, id_of_color: IdOfColor | None = None
) -> frozenset[int] | None:
    """Checks an image and its pseudo labels; returns the labels in its weak mask, if it has one."""
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(info['img_path'], backend_args, False, image_loader(dataset))
    for transform in transforms_of(dataset):
        if isinstance(transform, LoadPseudoLabels):
            labels = transform.read(dict(info, ori_shape=size[::-1]), id_of_color)
            label_of = check_mask(transform.path_of(info['img_path']), labels, num_classes)
            if isinstance(transform, LoadWeakMasks) and transform.has_mask(info['img_path']):
                return frozenset(label_of.values())
    return None


def leaks(trained: Any, validated: Any) -> Iterator[str]:
    """Finds images that are labelled and unlabelled, or trained and validated on; a line each."""
    parts = list(sets_by_domain(trained).values())
    labeled = [getattr(part, 'labeled', part) for part in parts]
    unlabeled = [part.unlabeled for part in parts if getattr(part, 'unlabeled', None) is not None]
    val = [] if validated is None else [validated]
    sets = {'labelled': labeled, 'validated on': val, 'unlabelled': unlabeled}
    paths = {use: [*chain.from_iterable(map(image_paths, parts))] for use, parts in sets.items()}
    # partly labelled images are meant to be both
    leaves = chain.from_iterable(map(leaf_datasets, unlabeled))
    twice = {path for leaf in leaves for path in getattr(leaf, 'used_twice', ())}
    paths['unlabelled'] = [path for path in paths['unlabelled'] if path not in twice]
    paths['labelled'] += sorted(twice)
    return describe_leaks(paths)


def _has(dataset: Any, *classes: type) -> bool:
    return any(isinstance(transform, classes) for transform in transforms_of(dataset))


def _pipeline_problems(labeled: Any, unlabeled: Any) -> Iterator[Problem]:
    """Checks that the pipelines of a training keep images and labels together."""
    for leaf in leaf_datasets(labeled):
        yield from _moving_problems(leaf, _MOVING, 'labeled.pipeline')
        if _has(leaf, mmseg_transforms.RandomRotFlip):  # rotates masks as images
            mistake = 'RandomRotFlip mixes the ids of a mask and fills it with class 0'
            yield Problem('labeled.pipeline', mistake, 'RandomRotate and RandomFlip')
    for leaf in leaf_datasets(unlabeled) if unlabeled is not None else ():
        if _has(leaf, LoadPseudoLabels) and _has(leaf, PackUnlabeledInputs):
            mistake = 'LoadPseudoLabels with PackUnlabeledInputs'
            yield Problem('unlabeled.pipeline', mistake, 'PackPseudoLabels at the end')


def _moving_problems(dataset: Any, moves: tuple[type, ...], key: str) -> Iterator[Problem]:
    """Checks that none of some transforms moves an image before its mask is loaded."""
    moving = ''
    for transform in transforms_of(dataset):
        name = type(transform).__name__
        if isinstance(transform, LoadAnnotations) and moving:
            mistake = f'{moving} before {name} moves the image and not its mask'
            yield Problem(key, mistake, f'{name} before it')
        if isinstance(transform, moves):
            moving = moving or name


def _warn_of_fillings(labeled: Any, unlabeled: Any) -> None:
    """Warns of transforms that fill masks with a class, or unlabelled images without a mark."""
    for leaf in leaf_datasets(labeled):
        classes = (getattr(leaf, 'metainfo', None) or {}).get('classes') or ()
        for transform in transforms_of(leaf):
            settings = getattr(transform, 'pad_cfg', None) or {}  # of a CenterCrop
            padded = getattr(transform, 'pad_val', settings.get('pad_val'))
            for key, value in (
                ('seg_pad_val', getattr(transform, 'seg_pad_val', None)),
                ('seg_fill_in', getattr(transform, 'seg_fill_in', None)),
                ("pad_val['seg']", padded.get('seg') if isinstance(padded, dict) else None),
            ):
                if isinstance(value, (int, float)) and 0 <= value < len(classes):
                    warn(
                        f'labeled.pipeline: {type(transform).__name__} fills masks with class '
                        f'{classes[int(value)]} ({key}={value}); expected {IGNORE_INDEX}, ignored'
                    )
    for leaf in leaf_datasets(unlabeled) if unlabeled is not None else ():
        fills = [type(part).__name__ for part in transforms_of(leaf) if isinstance(part, _FILLING)]
        if fills and not _has(leaf, MarkValidPixels, LoadPseudoLabels):
            warn(
                f'unlabeled.pipeline: {fills[0]} fills pixels, and the losses count them; expected '
                'MarkValidPixels after the loading and PackUnlabeledInputs at the end'
            )
