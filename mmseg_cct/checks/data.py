"""Checks data sets and their files: lists, images, masks, and the pipelines that load them."""

import functools
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mmcv.transforms import LoadImageFromFile
from mmengine import fileio

from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES, read_mask
from mmseg_cct.utils.image_lists import read_list
from mmseg_cct.utils.labels import IGNORE_INDEX
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.shares import on_first_process

from .images import image_size, is_turned
from .leaks import describe_leaks
from .masks import check_mask, judge_labels

# A waiting task of a thread pool takes 1.7 KiB: gigabytes for a million files.
_FILES_AT_ONCE = 4096
_RESIZING = {'Resize', 'RandomResize', 'RandomChoiceResize', 'ResizeToMultiple'}
_FILLING = {'Pad', 'RandomRotate', 'RandomRotFlip'}
_MIXES_IDS = (
    'RandomRotFlip mixes the ids of a mask and fills it with class 0',
    'RandomRotate and RandomFlip',
)
_MOVING = {*_RESIZING, *_FILLING, 'RandomCrop', 'CenterCrop', 'RandomFlip', 'RandomAffine'}


def check_datasets(labeled: Any, unlabeled: Any = None) -> None:
    """Validates the training data.

    Decodes labelled images, masks and pseudo labels in full. Of unlabelled images it reads only the
    header and the last bytes, and it never opens their masks. A `UserError` names the files that
    are missing, unreadable, of the wrong size, or have an unknown label id, or it says that the
    masks leave nothing to learn from. In a distributed run only rank 0 reads files; every rank
    raises its error.
    """

    def look() -> None:
        raise_problems(_mask_loading_problems(labeled))
        found: Counter[frozenset[int]] = Counter()
        turned: list[str] = []
        check_pair = functools.partial(_check_labeled_image, turned=turned)
        problems = _problems_of_files(check_pair, labeled, found)
        if unlabeled is not None:
            # the unlabelled set may have no class names
            num_classes = len(labeled.metainfo['classes'])
            check = functools.partial(_check_unlabeled_image, num_classes=num_classes)
            problems = itertools.chain(problems, _problems_of_files(check, unlabeled))
        raise_problems(problems)
        _judge(found, labeled)
        _warn_of_turned(turned, 'labeled')
        if unlabeled is not None:
            labels = dict(labelled=image_paths(labeled))
            for line in describe_leaks(labels, image_paths(unlabeled), 'unlabelled'):
                warn(line)

    on_first_process(look)


def look_at_evaluation_data(dataset: Any, key: str) -> None:
    """Validates evaluation data on this process.

    Decodes images and masks in full. Of images without masks it reads only the header and the end.
    """
    found: Counter[frozenset[int]] = Counter()
    turned: list[str] = []
    check_pair = functools.partial(_check_labeled_image, turned=turned)
    try:
        for leaf in leaf_datasets(dataset):
            has_masks = 'LoadAnnotations' in kinds_in(leaf)
            raise_problems(_cropping_problems(leaf) if has_masks else ())
            check = check_pair if has_masks else _check_unlabeled_image
            raise_problems(_problems_of_files(check, leaf, found))
    except UserError as error:
        raise UserError(error.within(key)) from None
    # a test set whose predictions are submitted elsewhere may have void masks
    if found and key.startswith('val') and frozenset().union(*found) <= {IGNORE_INDEX}:
        void = f'all {found.total()} masks hold only ignored pixels'
        raise UserError(Problem(key, void, 'labelled pixels to validate on'))
    _warn_of_turned(turned, key)


def check_unlabeled_pipeline(dataset: Any) -> None:
    """Checks that the unlabelled set needs no masks and packs the pixels that it marks.

    Logs a warning if a transform fills pixels that nothing marks.
    """
    for leaf in leaf_datasets(dataset):
        raise_problems(_pipeline_problems(leaf))
        fills = [_name(part) for part in _transforms(leaf) if _FILLING & {*_bases(part)}]
        if fills and not kinds_in(leaf) & {'MarkValidPixels', 'LoadPseudoLabels'}:
            warn(
                f'unlabeled.pipeline: {fills[0]} fills pixels, and the losses count them; expected '
                'MarkValidPixels after the loading and PackUnlabeledInputs at the end'
            )


def _mask_loading_problems(dataset: Any) -> Iterator[Problem]:
    """Checks that masks are loaded in full, before anything moves their images."""
    for leaf in leaf_datasets(dataset):
        classes = leaf.metainfo.get('classes') or ()
        moving = None
        for transform in _transforms(leaf):
            kinds = {*_bases(transform)}
            if 'LoadAnnotations' in kinds and moving:
                found = f'{moving} before {_name(transform)} moves the image and not its mask'
                yield Problem('labeled.pipeline', found, f'{_name(transform)} before it')
            if 'RandomRotFlip' in kinds:
                yield Problem('labeled.pipeline', *_MIXES_IDS)
            if _name(transform) == 'LoadAnnotations' and len(classes) > 256:
                found = f'{len(classes)} classes'
                yield Problem('labeled', found, 'at most 256, which LoadAnnotations tells apart')
            moving = moving or (_name(transform) if kinds & _MOVING else None)


def _cropping_problems(dataset: Any) -> Iterator[Problem]:
    """Checks that predictions cover what the masks cover: MMSeg undoes only resizing and flips."""
    for transform in _transforms(dataset):
        kinds = {*_bases(transform)}
        if 'LoadAnnotations' in kinds:
            return
        if kinds & (_MOVING - _RESIZING - {'RandomFlip'}):
            found = f'{_name(transform)} moves the image and not its mask'
            yield Problem('pipeline', found, 'a pipeline without it')


def _pipeline_problems(dataset: Any) -> Iterator[Problem]:
    key, none, kinds = 'unlabeled.pipeline', 'an unlabelled image has none', kinds_in(dataset)
    for transform in _transforms(dataset):
        name, ratio = _name(transform), getattr(transform, 'cat_max_ratio', 1.0)
        if 'LoadAnnotations' in _bases(transform):
            yield Problem(key, f'{name} reads masks', f'a pipeline without it; {none}')
        if ratio < 1.0:
            found = f'{name}(cat_max_ratio={ratio}) looks at the mask'
            yield Problem(key, found, f'cat_max_ratio=1.0; {none}')
    if {'LoadPseudoLabels', 'RandomRotFlip'} <= kinds:
        yield Problem(key, *_MIXES_IDS)
    if {'LoadPseudoLabels', 'PackUnlabeledInputs'} <= kinds:
        found = 'LoadPseudoLabels with PackUnlabeledInputs'
        yield Problem(key, found, 'PackPseudoLabels at the end')
    if 'MarkValidPixels' in kinds and not kinds & {'PackUnlabeledInputs', 'PackPseudoLabels'}:
        found = 'MarkValidPixels with PackSegInputs'
        yield Problem(key, found, 'PackUnlabeledInputs at the end')


def leaf_datasets(dataset: Any) -> list[Any]:
    """Unwraps mmengine's `ConcatDataset`, `RepeatDataset` and similar wrappers."""
    if hasattr(dataset, 'datasets'):
        return [leaf for part in dataset.datasets for leaf in leaf_datasets(part)]
    if hasattr(dataset, 'dataset'):
        return leaf_datasets(dataset.dataset)
    return [dataset]


def kinds_in(dataset: Any) -> set[str]:
    """Returns the names of the transforms' classes in a set's pipeline, and of their bases."""
    return {name for transform in _transforms(dataset) for name in _bases(transform)}


def image_loader(dataset: Any) -> LoadImageFromFile | None:
    """Finds the transform that loads the images of a data set."""
    return next((t for t in _transforms(dataset) if isinstance(t, LoadImageFromFile)), None)


def explain_failed_build(config: Any, key: str) -> None:
    """Raises a one-line error if a missing or empty list or folder made a build fail."""
    if not isinstance(config, dict):
        return
    root, ann_file = config.get('data_root') or '', config.get('ann_file')
    try:
        if ann_file:
            read_list(os.path.join(root, ann_file))
        raise_problems(_folder_problems(config, root))
    except UserError as error:
        raise UserError(error.within(key)) from None


def _folder_problems(config: Any, root: str) -> Iterator[Problem]:
    prefix = config.get('data_prefix') or {}
    if 'img_path' not in prefix:
        return
    folder = Path(root, prefix['img_path'])
    suffixes = (config['img_suffix'],) if 'img_suffix' in config else IMAGE_SUFFIXES
    if not folder.is_dir():
        yield Problem(str(folder), 'no such folder', 'the images there (data_prefix.img_path)')
    elif not config.get('ann_file') and not any(
        path.name.endswith(suffixes) for path in folder.rglob('*')
    ):
        expected = f'names that end in {", ".join(suffixes)}'
        yield Problem(str(folder), 'no image in this folder', expected)


def infos_of(dataset: Any) -> Iterator[dict[str, Any]]:
    """Yields the data infos of a set's images, wrapped or not; drawn images name no file."""
    for leaf in leaf_datasets(dataset):
        for index in range(len(leaf)):
            yield leaf.get_data_info(index)


def image_paths(dataset: Any) -> Iterator[str]:
    """Yields the paths of a set's images, which may be addresses on other storage."""
    for info in infos_of(dataset):
        if (path := info.get('img_path')) is not None:
            yield path


def _problems_of_files(
    check: Callable[..., frozenset[int] | None],
    dataset: Any,
    found: Counter[frozenset[int]] | None = None,
) -> Iterator[UserError]:
    """Yields the errors that the check raises for files, and counts its results for the others."""
    found = Counter() if found is None else found
    for leaf in leaf_datasets(dataset):

        def outcome(info: Mapping[str, Any], leaf: Any = leaf) -> Any:
            try:
                return check(info, leaf)
            except UserError as error:
                return error

        files = (info for info in infos_of(leaf) if info.get('img_path') is not None)
        with ThreadPoolExecutor(min(16, (os.cpu_count() or 1) + 4)) as pool:
            while some := list(itertools.islice(files, _FILES_AT_ONCE)):
                # in the order of the list
                for result in pool.map(outcome, some):
                    if isinstance(result, UserError):
                        yield result
                    elif result is not None:
                        found[result] += 1


def _judge(found: Counter[frozenset[int]], dataset: Any) -> None:
    leaf = leaf_datasets(dataset)[0]
    mapped = getattr(leaf, 'reduce_zero_label', False) or getattr(leaf, 'label_map', None)
    for line in judge_labels(found, leaf.metainfo['classes'], 'labeled', bool(mapped)):
        warn(line)


def _check_labeled_image(
    info: Mapping[str, Any], dataset: Any, turned: list[str]
) -> frozenset[int]:
    """Checks a pair, returns the labels in its mask, and notes the image if loading turns it."""
    image, mask = info['img_path'], info.get('seg_map_path')
    if mask is None:
        found = 'no mask is named for this labelled image'
        raise UserError(Problem(image, found, 'a data set with data_prefix.seg_map_path'))
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(image, backend_args, True, image_loader(dataset))
    if '://' not in mask and not fileio.exists(mask, backend_args):
        raise UserError(Problem(image, 'no mask for this labelled image', mask))
    labels = check_mask_of(info, size, dataset)
    if is_turned(image, backend_args, image_loader(dataset)):
        turned.append(image)
    if min(size) < 2:
        found = f'{size[0]}×{size[1]} pixels'
        expected = '2 or more on each side; MMSeg drops a side of 1 from a mask'
        raise UserError(Problem(mask, found, expected))
    return labels


def check_mask_of(info: Mapping[str, Any], size: tuple[int, int], dataset: Any) -> frozenset[int]:
    """Reads and checks the mask of an image; returns its labels."""
    mask = info['seg_map_path']
    labels = check_mask(
        mask,
        read_mask(mask, getattr(dataset, 'backend_args', None), _mask_backend(dataset)),
        len(dataset.metainfo['classes']),
        image=info['img_path'],
        size=size,
        label_map=info.get('label_map'),
        reduce_zero_label=info.get('reduce_zero_label', False),
    )
    return frozenset(labels.values())


def _mask_backend(dataset: Any) -> str | None:
    """Finds what decodes the masks of a data set, Pillow if its pipeline loads none."""
    loaders = (t.imdecode_backend for t in _transforms(dataset) if 'LoadAnnotations' in _bases(t))
    return next(loaders, 'pillow')


def _check_unlabeled_image(info: Mapping[str, Any], dataset: Any, num_classes: int = 255) -> None:
    backend_args = getattr(dataset, 'backend_args', None)
    size = image_size(info['img_path'], backend_args, False, image_loader(dataset))
    for transform in _transforms(dataset):
        if 'LoadPseudoLabels' in _bases(transform):
            labels = transform.read(dict(info, ori_shape=size[::-1]))
            check_mask(transform.path_of(info['img_path']), labels, num_classes)


def _warn_of_turned(turned: list[str], key: str) -> None:
    if turned:
        warn(
            f'{key}: {len(turned)} images are turned by their EXIF tags, and their sizes do not '
            f'tell whether their masks are; the first is {min(turned)}; expected masks of the '
            'turned images'
        )


def _transforms(dataset: Any) -> Iterator[Any]:
    yield from _flatten(getattr(dataset, 'pipeline', None))


def _flatten(transform: Any) -> Iterator[Any]:
    # RandomApply, RandomChoice and similar transforms keep theirs in `transforms` too.
    if isinstance(transform, (list, tuple)):
        for part in transform:
            yield from _flatten(part)
    else:
        yield transform
        yield from _flatten(getattr(transform, 'transforms', ()))


def _name(part: Any) -> str:
    return type(part).__name__


def _bases(part: Any) -> list[str]:
    return [kind.__name__ for kind in type(part).__mro__]
