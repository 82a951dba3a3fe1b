"""Settings of pseudo labels, read from the section `pseudo_labels` of a config."""

import copy
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS

from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.engine.checkpoints import checkpoint_bytes
from mmseg_cct.errors import UserError

from .cam import mmpretrain_registry
from .labels_from_maps import DenseCRF, Thresholds


@dataclass(frozen=True)
class WeakImage:
    """An image with its image-level labels."""

    name: str  # path below the folder of images, without extension
    path: str  # absolute
    class_ids: tuple[int, ...]  # classes in the image, as ids of the classifier


@dataclass(frozen=True)
class PseudoLabelSettings:
    """Settings of pseudo labels."""

    images: tuple[WeakImage, ...]
    classes: tuple[str, ...]  # names of the label ids, those of the segmentation set
    palette: np.ndarray  # (C, 3) uint8, RGB, colours of the label ids
    label_ids: tuple[int, ...]  # label id of each class id of the classifier
    background: int | None  # its label id; None if the set has none
    # width and height of the classifier's input at scale 1; None for the image's own
    input_size: tuple[int, int] | None
    scales: tuple[float, ...]  # of the input
    thresholds: Thresholds
    crf: DenseCRF
    segmentation: Any  # a set whose existing masks are compared with the labels

    def origin(self, weights: Mapping[str, Any], with_crf: bool) -> dict[str, Any]:
        """Describes the origin of labels, so that a folder never holds two kinds."""
        return dict(
            # of the weights themselves: a copied or published file is the same classifier
            weights=hashlib.sha256(checkpoint_bytes(dict(weights))).hexdigest()[:16],
            classes=self.classes,
            background=self.background,
            input_size=self.input_size,
            scales=self.scales,
            thresholds=self.thresholds,
            crf=vars(self.crf) if with_crf else None,
        )


def read_settings(config: Config) -> PseudoLabelSettings:
    """Reads the section `pseudo_labels` of a classifier's config, and the data sets in it."""
    section = config.get('pseudo_labels')
    if section is None:
        raise UserError(config.filename, 'no pseudo_labels', 'a config like configs/weak')
    return _settings(config, **section)


def _settings(
    config: Config,
    images: dict,
    segmentation: dict,
    background: str | None = None,
    input_size: Sequence[int] | None = None,
    scales: Sequence[float] = (1.0,),
    thresholds: Mapping[str, float] | None = None,
    crf: Mapping[str, Any] | None = None,
) -> PseudoLabelSettings:
    # Data sets of two libraries, whose types have the same names: each is built in its own scope.
    with DefaultScope.overwrite_default_scope('mmseg'):
        masks: Any = DATASETS.build(copy.deepcopy(segmentation))
    classes = tuple(masks.metainfo.get('classes') or ())
    palette = masks.metainfo.get('palette') or class_colors(classes)
    weak_images, names = _read_images(images, config)
    return PseudoLabelSettings(
        images=weak_images,
        classes=classes,
        palette=np.array(palette, np.uint8),
        label_ids=tuple(_label_id(name, classes, 'images') for name in names),
        background=_label_id(background, classes, 'background') if background else None,
        input_size=(input_size[0], input_size[1]) if input_size else None,
        scales=tuple(scales),
        thresholds=Thresholds(**(thresholds or {})),
        crf=DenseCRF(**(crf or {})),
        segmentation=masks,
    )


def _read_images(dataset_config: dict, config: Config) -> tuple[tuple[WeakImage, ...], list[str]]:
    registry = mmpretrain_registry()
    with DefaultScope.overwrite_default_scope(config.get('default_scope') or 'mmpretrain'):
        dataset = registry.DATASETS.build(copy.deepcopy(dataset_config))
    folder, images = Path(os.path.abspath(dataset.img_prefix)), []
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        path = Path(os.path.abspath(info['img_path']))
        name = path.relative_to(folder).with_suffix('').as_posix()
        ids = tuple(sorted(int(label) for label in info['gt_label']))
        images.append(WeakImage(name, str(path), ids))
    return tuple(images), list(dataset.metainfo['classes'])


def _label_id(name: str, classes: tuple[str, ...], key: str) -> int:
    if name not in classes:
        problem = f'{name!r} is not a class of pseudo_labels.segmentation'
        raise UserError(f'pseudo_labels.{key}', problem, f'one of {", ".join(classes)}')
    return classes.index(name)
