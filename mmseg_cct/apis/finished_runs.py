"""What runs predict on their test set: the scores of each, and chosen images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from mmseg.evaluation import IoUMetric
from torch import Tensor
from torch.utils.data import Subset

from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import UserError


@dataclass(frozen=True)
class Evaluation:
    """IoU of a run on its test set."""

    iou: np.ndarray  # (C,) in [0, 1]; MMSeg's: nan where a class neither occurs nor is predicted
    image_miou: np.ndarray  # (N,), the mean of each test image over the classes that it shows
    areas: np.ndarray  # (3, C) pixels found, predicted and in the truth


@dataclass(frozen=True)
class Picture:
    """A test image with its ground truth and a prediction."""

    name: str  # of the file, or the number of an image without one
    image: np.ndarray  # (H, W, 3) uint8, RGB
    truth: np.ndarray  # (H, W) class ids
    prediction: np.ndarray  # (H, W) class ids


def evaluate(run: Run) -> Evaluation:
    """Evaluates a run on its whole test set.

    Raises:
        UserError: If nothing in the test set is labelled.
    """
    key, num_classes = 'test_dataloader.dataset', len(run.test_loader.dataset.metainfo['classes'])
    areas: list[tuple[Tensor, ...]] = []
    for batch in run.test_loader:
        for sample, ids in zip(batch['data_samples'], run.predictor.class_ids(batch)):
            if 'gt_sem_seg' not in sample:
                raise UserError(f'{run.name}: {key}', 'has no masks', 'labelled images')
            truth = sample.gt_sem_seg.data.squeeze(0)
            ids = ids.cpu().to(truth.dtype)
            areas.append(IoUMetric.intersect_and_union(ids, truth, num_classes, IGNORE_INDEX))
    intersection, union, found, in_truth = (torch.stack(parts) for parts in zip(*areas))
    if not in_truth.any():
        raise UserError(f'{run.name}: {key}', 'no pixel with a class', 'labelled images')
    # by image to find the hard ones, over all images for the scores
    by_image = intersection / union
    shown = in_truth > 0
    image_miou = torch.where(shown, by_image, 0).sum(1) / shown.sum(1)
    total = torch.stack([intersection, found, in_truth]).sum(1)
    iou = total[0] / union.sum(0)
    return Evaluation(iou.numpy(), image_miou.numpy(), total.numpy())


def predict_images(run: Run, indices: Sequence[int]) -> list[Picture]:
    """Predicts chosen images of the test set, in the order of their indices."""
    loader = run.test_loader
    pictures = []
    for index, item in zip(indices, Subset(loader.dataset, indices)):
        (ids,) = run.predictor.class_ids(loader.collate_fn([item]))
        sample = item['data_samples']
        path = sample.metainfo.get('img_path')
        pictures.append(
            Picture(
                name=Path(path).name if path else f'image {index}',
                image=as_rgb(item['inputs'].numpy().transpose(1, 2, 0)),
                truth=sample.gt_sem_seg.data.squeeze(0).cpu().numpy(),
                prediction=ids.cpu().numpy(),
            )
        )
    return pictures
