"""Data set of pairs of a labelled and an unlabelled image."""

import copy
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.dataset import BaseDataset
from mmseg.datasets.transforms import PackSegInputs
from mmseg.registry import DATASETS
from torch.utils.data import Dataset

from mmseg_cct.config.walk import leaf_sets
from mmseg_cct.datasets.files.image_files import read_list, resolve_list
from mmseg_cct.datasets.files.images import image_size
from mmseg_cct.errors import UserError, printable
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.ranges import at_least, ranges
from mmseg_cct.utils.seed import seeded_random_state
from mmseg_cct.utils.text import one_line

from .leaves import image_loader, leaf_datasets
from .samplers.pair_sampler import PairDraw, require_draws
from .transforms.unlabeled import PackPseudoLabels
from .transforms.weak_masks import LoadWeakMasks

_warn_once = functools.cache(warn)


@DATASETS.register_module()
class SemiSegDataset(Dataset):
    """Labelled and unlabelled images, of which `PairSampler` draws pairs.

    A draw gives ``{'inputs': {'labeled': Tensor, 'unlabeled': Tensor}, 'data_samples': {'labeled':
    SegDataSample, 'unlabeled': SegDataSample}}``; images are ``(3, H, W)`` uint8. Without an
    unlabelled set it gives MMSeg's plain ``{'inputs': Tensor, 'data_samples': SegDataSample}``, so
    that any MMSeg model trains on it: the supervised baseline.

    With `StrongViews` in the unlabelled pipeline both dicts also hold `unlabeled_strong_0`,
    `unlabeled_strong_1`, ...: the same crop and flip as `unlabeled` in other colours, and copies of
    its sample. `BranchPreprocessor` gives every unlabelled sample a `valid_mask`, `(1, H, W)` bool,
    False where cropping or padding filled pixels; it is the same in all views of an image.

    Augmentation runs under the seeds of the draw: the same draw gives the same tensors in every
    worker, with any number of workers, and after a resume. The masks of unlabelled images are never
    read: their paths are dropped as soon as the set is built. Unlabelled images may carry pseudo
    labels (`LoadPseudoLabels`, `PackPseudoLabels`).

    By their index the images come one at a time in MMSeg's plain dicts, first the labelled ones,
    each as it is trained on and augmented under its index as seed: what MMSeg's tools browse.

    Args:
        labeled: The labelled set, a `BaseSegDataset` or its config. In a config, ``ann_file`` is
            looked for in the working directory first, then under ``data_root``.
        unlabeled: The unlabelled set, likewise; its pipeline loads no annotations.
        split_dir: Folder of the lists `{n}_labeled.txt` and `{n}_unlabeled.txt`, which replace each
            set's ``ann_file``.
        num_labeled: n, the number of labelled images.
        strong_views: Config of `StrongViews`, which is added at the end of the unlabelled pipeline.
        labeled_per_unlabeled: Number of labelled images per unlabelled image in a batch; the other
            draws have no unlabelled image. More than 1 makes a step cheaper.
        weak_masks: Folder of masks of unknown quality, which the unlabelled images get as pseudo
            labels by `LoadWeakMasks`.

    Raises:
        UserError: If a set cannot be built or is empty, or the labelled set has no class names.

    Examples:
        >>> from mmengine.registry import init_default_scope
        >>> from mmseg_cct.datasets import PairSampler
        >>> init_default_scope('mmseg')
        >>> draw, pack = dict(type='DrawShapesScene'), dict(type='PackSegInputs')
        >>> labeled = dict(type='ShapesDataset', start=0, count=4, pipeline=[draw, pack])
        >>> draw_image = dict(draw, with_seg_map=False)
        >>> unlabeled = dict(labeled, start=4, count=12, pipeline=[draw_image, pack])
        >>> pairs = SemiSegDataset(labeled, unlabeled)
        >>> draw = next(iter(PairSampler(pairs, seed=0)))
        >>> {branch: tuple(image.shape) for branch, image in pairs[draw]['inputs'].items()}
        {'labeled': (3, 64, 64), 'unlabeled': (3, 64, 64)}
    """

    @ranges(labeled_per_unlabeled=at_least(1))
    def __init__(
        self,
        labeled: dict | BaseDataset,
        unlabeled: dict | BaseDataset | None = None,
        split_dir: str | None = None,
        num_labeled: int | None = None,
        strong_views: dict | None = None,
        labeled_per_unlabeled: int = 1,
        weak_masks: str | None = None,
    ) -> None:
        if num_labeled is not None:
            lists = dict(split_dir=split_dir, num_labeled=num_labeled)
            labeled = branch_settings(dict(labeled=labeled, **lists), 'labeled')
            unlabeled = branch_settings(dict(unlabeled=unlabeled, **lists), 'unlabeled')
        # Wrappers have no pipeline: the views go to each set that loads images.
        if strong_views is not None and unlabeled is not None:
            unlabeled = copy.deepcopy(unlabeled)
            for _, leaf in leaf_sets(unlabeled):
                leaf['pipeline'] = [*leaf.get('pipeline', ()), strong_views]
        self.labeled_per_unlabeled = labeled_per_unlabeled
        self.weak_masks = weak_masks
        # The labelled set names the classes.
        self.labeled = _build(labeled, 'labeled')
        self.unlabeled = None
        self.metainfo = self.METAINFO = self.labeled.metainfo  # MMSeg's tools know the second
        if not self.metainfo.get('classes'):
            expected = 'metainfo=dict(classes=(...)) in the order of the label ids'
            raise UserError('labeled.metainfo', 'no class names', expected)
        self.classes = tuple(self.metainfo['classes'])
        # Its masks may be on disk, and no training may depend on them.
        if unlabeled is not None:
            self.unlabeled = _build(copy.deepcopy(unlabeled), 'unlabeled')
            _forget_masks(self.unlabeled)
            if weak_masks is not None:
                _load_weak_masks(self.unlabeled, weak_masks, self.classes)

    def __len__(self) -> int:
        """Returns the number of labelled and unlabelled images."""
        return len(self.labeled) + len(self.unlabeled or ())

    def __getitem__(self, draw: PairDraw | int) -> dict:
        """Loads and augments the images of a draw, or one image, as the class describes.

        Raises:
            UserError: If a file is unreadable, or a pipeline fails on an image or omits what its
                branch needs.
        """
        if not isinstance(draw, PairDraw):
            index, num_labeled = range(len(self))[draw], len(self.labeled)
            is_labeled = index < num_labeled
            branch = 'labeled' if is_labeled else 'unlabeled'
            item = self._load(branch, index if is_labeled else index - num_labeled, seed=index)
            return {key: item[key] for key in ('inputs', 'data_samples')}
        labeled = self._load('labeled', draw.labeled, draw.labeled_seed)
        if self.unlabeled is None:
            return labeled
        pair = {'labeled': labeled}
        if draw.unlabeled is not None:
            pair |= self._views(draw.unlabeled, draw.unlabeled_seed)
        keys = 'inputs', 'data_samples'
        return {key: {name: view[key] for name, view in pair.items()} for key in keys}

    def __getitems__(self, draws: Sequence[PairDraw]) -> list[dict]:
        """Loads a batch for a data loader; None stands for unlabelled images that a draw lacks."""
        require_draws(draws, PairDraw, 'PairSampler', 'SemiSegDataset')
        # The first draws of a batch have unlabelled images, the others labelled ones alone.
        ratio = 1 if self.unlabeled is None else self.labeled_per_unlabeled
        number = len(draws) // ratio
        without = [draw._replace(unlabeled=None) for draw in draws[number:]]
        items = [self[draw] for draw in (*draws[:number], *without)]
        # collating needs the same keys in every item
        for item in items[number:]:
            for key, branches in item.items():
                item[key] = {**dict.fromkeys(items[0][key]), **branches}
        return items

    def _views(self, index: int, seed: int) -> dict[str, dict]:
        """Loads an unlabelled image and its strong views, by the names in the result."""
        weak = self._load_unlabeled(index, seed)
        if 'gt_sem_seg' in weak['data_samples']:
            expected = 'no loading of masks in it, and PackPseudoLabels after LoadPseudoLabels'
            raise UserError('unlabeled.pipeline', 'gives a ground truth', expected)
        views = {'unlabeled': weak}
        for number, view in enumerate(weak.get('strong_views', ())):
            sample = weak['data_samples'].new()
            views[f'unlabeled_strong_{number}'] = dict(inputs=view, data_samples=sample)
        return views

    def _load_unlabeled(self, index: int, seed: int, tries: int = 8) -> dict:
        """Loads an unlabelled image or, if it cannot be used, the next one, which is as good."""
        dataset: Any = self.unlabeled
        try:
            return self._load('unlabeled', index, seed)
        except UserError as error:
            image = dataset.get_data_info(index).get('img_path')
            if not (image and tries and str(error).startswith(printable(image))):
                raise
            _warn_once(f'{error}; the next unlabelled image is used in its place')
            return self._load_unlabeled((index + 1) % len(dataset), seed, tries - 1)

    def _load(self, branch: str, index: int, seed: int) -> dict:
        dataset = getattr(self, branch)
        try:
            with seeded_random_state(seed):
                item = dataset[index]
        except UserError:
            raise
        except Exception as error:
            image = dataset.get_data_info(index).get('img_path')
            if image:  # a decoder does not say that its file is damaged
                leaf = leaf_datasets(dataset)[0]
                image_size(image, getattr(leaf, 'backend_args', None), True, image_loader(leaf))
            problem = f'{branch}.pipeline does not run on it ({one_line(error)})'
            raise UserError(image or f'{branch} image {index}', problem) from error
        item['data_samples'].set_metainfo({'classes': self.classes})
        return item


def branch_settings(dataset: Mapping[str, Any], branch: str) -> Any:
    """Returns the settings of the 'labeled' or 'unlabeled' set, or None if there is none.

    With `num_labeled`, ``ann_file`` is the list of that split.
    """
    settings, number = dataset.get(branch), dataset.get('num_labeled')
    if settings is None or number is None:
        return settings
    return {**settings, 'ann_file': os.path.join(dataset['split_dir'], f'{number}_{branch}.txt')}


def _build(config: dict | BaseDataset, branch: str) -> Any:
    if isinstance(config, Mapping):
        config = dict(config)
        if isinstance(config.get('ann_file'), str):
            config['ann_file'] = resolve_list(config['ann_file'])
    try:
        if isinstance(config, dict) and str(config.get('ann_file')).endswith('.txt'):
            # rejects a list that is not there or names an image twice, which MMSeg would not
            read_list(os.path.join(config.get('data_root') or '', config['ann_file']))
        dataset = DATASETS.build(config) if isinstance(config, dict) else config
        dataset.full_init()
    except UserError as error:
        raise error.within(branch) from None
    except ValueError as error:
        # NumPy's, when mmengine packs an empty list
        if 'at least one array' not in str(error):
            raise
        dataset = ()
    if not len(dataset):
        raise UserError(branch, 'the set is empty', 'at least one image')
    return dataset


def _forget_masks(dataset: Any) -> None:
    """Drops the masks' paths from the data infos, so that no transform can open one."""
    for leaf in leaf_datasets(dataset):
        # A set that names no masks stays as it is, to avoid copying a list of millions.
        if not any('seg_map_path' in leaf.get_data_info(index) for index in range(len(leaf))):
            continue
        infos = [leaf.get_data_info(index) for index in range(len(leaf))]
        for info in infos:
            info.pop('seg_map_path', None)
        leaf.data_list = infos
        if leaf.serialize_data:
            leaf.data_bytes, leaf.data_address = leaf._serialize_data()


def _load_weak_masks(dataset: Any, folder: str, classes: Sequence[str]) -> None:
    """Lets the pipelines load masks of a folder after the image, and pack them."""
    for leaf in leaf_datasets(dataset):
        steps = leaf.pipeline.transforms
        steps.insert(1, LoadWeakMasks(leaf.data_prefix.get('img_path', ''), folder, classes))
        for index, step in enumerate(steps):
            if isinstance(step, PackSegInputs):
                steps[index] = PackPseudoLabels(step.meta_keys)
