"""Checks the files of data sets: images, masks, pseudo labels and image-level labels."""

import copy
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mmcv.transforms import LoadAnnotations
from mmengine import fileio
from mmseg.registry import DATASETS

from mmseg_cct.datasets.files.images import IdOfColor, image_size, is_turned
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_mask, judge_labels
from mmseg_cct.datasets.leaves import image_loader, infos_of, leaf_datasets, transforms_of
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.transforms import LoadPseudoLabels
from mmseg_cct.datasets.watched_files import check_mask_of, watch_files
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import ahead, on_first_process
from mmseg_cct.utils.text import one_line

from .pipelines import (
    check_unlabeled_pipeline,
    cropping_problems,
    has,
    mask_loading_problems,
    warn_of_filled_masks,
)

# A task of a thread pool costs as much as reading a header: threads get lots of files where there
# are many, and few of these wait.
_MANY, _LOT, _WAITING_LOTS = 4096, 64, 64

Info = Mapping[str, Any]  # mmengine's of an image


def check_pairs(pairs: SemiSegDataset) -> None:
    """Validates the pipelines, images and masks of a training.

    Decodes labelled images, masks and pseudo labels in full. Of unlabelled images it reads only the
    header and the last bytes, and it never opens their masks. In a distributed run only rank 0
    reads files; every rank raises its error.
    """
    labeled, unlabeled = pairs.labeled, pairs.unlabeled
    if unlabeled is not None:
        check_unlabeled_pipeline(unlabeled)

    def check_files() -> None:
        raise_problems(mask_loading_problems(labeled))
        warn_of_filled_masks(labeled)
        label_sets: Counter[frozenset[int]] = Counter()
        turned: list[str] = []
        check_pair = functools.partial(_check_labeled_image, turned=turned, id_of_color={})
        problems = _problems_of_files(check_pair, labeled, label_sets)
        if unlabeled is not None:
            # the unlabelled set may have no class names
            num_classes = len(labeled.metainfo['classes'])
            check = functools.partial(_check_unlabeled_image, num_classes=num_classes)
            problems = itertools.chain(problems, _problems_of_files(check, unlabeled, Counter()))
        raise_problems(problems)
        leaf = leaf_datasets(labeled)[0]
        mapped = getattr(leaf, 'reduce_zero_label', False) or getattr(leaf, 'label_map', None)
        for line in judge_labels(label_sets, leaf.metainfo['classes'], 'labeled', bool(mapped)):
            warn(line)
        _warn_of_turned(turned, 'labeled')

    on_first_process(check_files)


def build_evaluation_set(settings: Any, key: str) -> Any:
    """Builds a set at a `key` of the config, and validates its files as before a test."""
    try:
        dataset = DATASETS.build(copy.deepcopy(settings))
        dataset.full_init()
    except UserError as error:
        raise error.within(key) from None
    except (AssertionError, OSError, ValueError) as error:
        raise UserError(key, one_line(error), 'a data set there') from error
    look_at_evaluation_data(dataset, key)
    watch_files(dataset)
    return dataset


def look_at_evaluation_data(dataset: Any, key: str) -> list[str]:
    """Validates evaluation data on this process, and names the classes that no mask shows.

    Decodes images and masks in full. Of images without masks it reads only the header and the end.
    """
    by_classes: dict[tuple[str, ...], Counter[frozenset[int]]] = {}
    turned: list[str] = []
    check_pair = functools.partial(_check_labeled_image, turned=turned, id_of_color={})
    try:
        for leaf in leaf_datasets(dataset):
            has_masks = has(leaf, LoadAnnotations)
            raise_problems(cropping_problems(leaf) if has_masks else ())
            check = check_pair if has_masks else _check_unlabeled_image
            classes = tuple((getattr(leaf, 'metainfo', None) or {}).get('classes') or ())
            counter = by_classes.setdefault(classes, Counter())
            raise_problems(_problems_of_files(check, leaf, counter))
    except UserError as error:
        raise error.within(key) from None
    label_sets = sum(by_classes.values(), Counter())
    # a test set whose predictions are submitted elsewhere may have void masks
    if label_sets and key.startswith('val') and {*itertools.chain(*label_sets)} <= {IGNORE_INDEX}:
        void = f'all {label_sets.total()} masks hold only ignored pixels'
        raise UserError(key, void, 'labelled pixels to validate on')
    _warn_of_turned(turned, key)
    shown = [(names, frozenset().union(*labels)) for names, labels in by_classes.items() if labels]
    return [name for names, ids in shown for index, name in enumerate(names) if index not in ids]


def _problems_of_files(
    check: Callable[..., frozenset[int] | None], dataset: Any, label_sets: Counter[frozenset[int]]
) -> Iterator[UserError]:
    """Yields the errors that the check raises for files, and counts its results for the others."""

    def outcomes(infos: list[Info], leaf: Any) -> list[Any]:
        results: list[Any] = []
        for info in infos:
            try:
                results.append(check(info, leaf))
            except UserError as error:
                results.append(error)
        return results

    for leaf in leaf_datasets(dataset):
        look = functools.partial(outcomes, leaf=leaf)
        files = (info for info in infos_of(leaf) if info.get('img_path') is not None)
        # a small set keeps all threads busy only with a file each
        size = _LOT if len(leaf) > _MANY else 1
        results = ahead(look, _lots(files, size), _WAITING_LOTS)  # in the order of the list
        for result in itertools.chain.from_iterable(results):
            if isinstance(result, UserError):
                yield result
            elif result is not None:
                label_sets[result] += 1


def _lots(infos: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while lot := list(itertools.islice(infos, size)):
        yield lot


def _check_labeled_image(
    info: Info, dataset: Any, turned: list[str], id_of_color: IdOfColor
) -> frozenset[int]:
    """Checks a pair, returns the labels in its mask, and notes the image if loading turns it."""
    image, mask = info['img_path'], info.get('seg_map_path')
    if mask is None:
        raise UserError(image, 'no mask is named for it', 'data_prefix.seg_map_path')
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(image, backend_args, True, image_loader(dataset))
    if '://' not in mask and not fileio.exists(mask, backend_args):
        raise UserError(image, 'no mask for this labelled image', mask)
    if is_turned(image, backend_args, image_loader(dataset)):
        turned.append(image)
    return check_mask_of(info, size, dataset, id_of_color)


def _check_unlabeled_image(info: Info, dataset: Any, num_classes: int = 255) -> None:
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(info['img_path'], backend_args, False, image_loader(dataset))
    for transform in transforms_of(dataset):
        if isinstance(transform, LoadPseudoLabels):
            labels = transform.read(dict(info, ori_shape=size[::-1]))
            check_mask(transform.path_of(info['img_path']), labels, num_classes)


def _warn_of_turned(turned: list[str], key: str) -> None:
    if turned:
        images = f'{len(turned)} images are turned by their EXIF tags, first {min(turned)}'
        unknown = 'their sizes do not tell whether their masks are'
        warn(f'{key}: {images}, and {unknown}; expected masks of the turned images')
