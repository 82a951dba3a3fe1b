"""Which classes of masks of unknown quality are learned."""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmcv.transforms import LoadAnnotations
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.datasets.leaves import image_paths, infos_of, leaf_datasets, transforms_of
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.transforms.weak_masks import LoadWeakMasks
from mmseg_cct.engine.labels_record import read_labels
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import WeakCrossEntropy
from mmseg_cct.utils.log import say
from mmseg_cct.utils.text import counted

LEAST = 0.5  # a class that is right less often is more wrong than right


@HOOKS.register_module()
class WeakMasksHook(Hook):
    """Leaves out the classes of the `weak_masks` that are more wrong than right.

    Labelled images that have such a mask, too, show how often each class is right. If even the
    upper end of that precision (`mask_precision`) is below 0.5, `WeakCrossEntropy` does not learn
    the class. This assumes that the labelled images are drawn like the unlabelled ones, and that
    whatever made the masks has not learned from their labels: images that the network has which
    made a folder of predictions, as its `labels.json` says, are left out.
    """

    def before_train(self, runner: Runner) -> None:
        """Compares the masks of the labelled images, leaves out classes and logs which."""
        pairs, model = runner.train_dataloader.dataset, unwrap_model(runner.model)
        losses = [part for part in model.modules() if isinstance(part, WeakCrossEntropy)]
        has_masks = getattr(pairs, 'weak_masks', None) is not None
        if has_masks and pairs.unlabeled is None:  # the supervised baseline
            return
        if not (has_masks and losses):
            expected = 'weak_masks of the training set, and auxiliary_head.loss_weak'
            raise UserError('WeakMasksHook', 'nothing learns from masks', expected)
        number = sum(1 for _ in _images_with_masks(pairs, pairs.unlabeled))
        say(f'weak masks: {number} of {counted(len(pairs.unlabeled), "unlabelled image")}')
        if seen := _trained_on(pairs):
            images = counted(len(seen), 'labelled image')
            say(f'weak masks: not compared on {images} that their network was trained on')
        if not (areas := [*_areas(pairs, seen)]):
            say('weak masks: no labelled image tells how right they are')
            return
        area, right = np.stack(areas, 1)
        precision, upper = mask_precision(area, right)
        is_left_out = upper < LEAST  # NaN is not
        num_masks = (area > 0).sum(0)
        for index in np.argsort(~is_left_out, kind='stable'):  # what is left out comes first
            if number := num_masks[index]:
                line = f'{100 * precision[index]:.0f} % right on {counted(number, "mask")}'
                line += f', at most {100 * upper[index]:.0f} %'
                decision = 'left out' if is_left_out[index] else 'kept'
                say(f'weak masks: {pairs.classes[index]}: {line}, {decision}')
        if unknown := [name for name, number in zip(pairs.classes, num_masks) if not number]:
            say(f'weak masks: in no weak mask of a labelled image, kept: {", ".join(unknown)}')
        weight = torch.tensor(~is_left_out, dtype=torch.float32)
        for loss in losses:
            loss.class_weight = weight.to(next(model.parameters()).device)


def _images_with_masks(
    pairs: SemiSegDataset, dataset: Any
) -> Iterator[tuple[Any, dict, LoadWeakMasks]]:
    """Yields set, data info and loader of each image that has a mask."""
    for leaf in leaf_datasets(dataset):
        folders = leaf.data_prefix.get('img_path', ''), str(pairs.weak_masks)
        loader = LoadWeakMasks(*folders, pairs.classes)
        for info in infos_of(leaf):
            if info.get('img_path') and loader.has_mask(info['img_path']):
                yield leaf, info, loader


def _trained_on(pairs: SemiSegDataset) -> set[str]:
    """Finds the labelled images that the network was trained on which predicted the masks."""
    folder = Path(str(pairs.weak_masks)).absolute()
    labels = read_labels(folder) or read_labels(folder.parent)
    images = image_paths(pairs.labeled)
    return {str(path) for _, path in common_images(labels.labeled, images)} if labels else set()


def _areas(pairs: SemiSegDataset, seen: Container[str]) -> Iterator[list[np.ndarray]]:
    """Yields the pixels by class of each unseen image's mask, `(C,)`, and how many are right."""
    num_classes = len(pairs.classes)
    for leaf, info, loader in _images_with_masks(pairs, pairs.labeled):
        if info['img_path'] in seen:
            continue
        load = next(step for step in transforms_of(leaf) if isinstance(step, LoadAnnotations))
        true = load.transform(dict(info))['gt_seg_map']
        mask = loader.read({**info, 'ori_shape': true.shape})
        known = np.maximum(true, mask) < num_classes
        yield [
            np.bincount(mask[chosen], minlength=num_classes)
            for chosen in (known, known & (true == mask))
        ]


def mask_precision(
    area: np.ndarray, right: np.ndarray, z: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates the precision of each of C classes from n images.

    1. It is p = Σ_i r_i / Σ_i a_i: image i has a_i pixels that its mask gives to the class, of
       which r_i are right.
    2. The unit is the image, for pixels are wrong together, and large areas decide more: n images
       count as k = (Σ_i a_i)² / Σ_i a_i², Kish's effective number.
    3. The upper end of Wilson's interval of p from k trials is what p hardly exceeds.

    Args:
        area: a, `(n, C)` numbers of pixels.
        right: r, `(n, C)` of these.
        z: How far the upper end is from p, in standard deviations.

    Returns:
        p and its upper end, `(C,)` in [0, 1]; NaN where no mask shows the class.
    """
    area = area.astype(np.float64)
    with np.errstate(invalid='ignore'):
        p = right.sum(0) / area.sum(0)
        k = area.sum(0) ** 2 / np.square(area).sum(0)
        spread = np.sqrt(p * (1 - p) / k + np.square(z / k) / 4)
        return p, (p + z**2 / k / 2 + z * spread) / (1 + z**2 / k)
