"""What runs predict on their test set: the confusions of each, and chosen images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch.utils.data import Subset

from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.engine.metrics.scores import confusion_of, iou_of
from mmseg_cct.errors import UserError

from ..run import Run


@dataclass(frozen=True)
class Evaluation:
    """Pixels of a test set by image, true class and predicted class, `(N, C, C)`."""

    confusion: np.ndarray

    @property
    def iou(self) -> np.ndarray:
        """IoU by class over all images, `(C,)` in [0, 1]; nan for one without a pixel."""
        return iou_of(self.confusion.sum(0))

    @property
    def shown(self) -> np.ndarray:
        """Whether any mask shows each class, `(C,)`."""
        return self.confusion.sum((0, 2)) > 0

    @property
    def image_miou(self) -> np.ndarray:
        """The mean IoU of each image over the classes that it shows, `(N,)`."""
        in_truth = self.confusion.sum(2) > 0
        return np.where(in_truth, iou_of(self.confusion), 0).sum(1) / in_truth.sum(1).clip(1)

    def confusions(self, number: int) -> list[tuple[int, int, float]]:
        """Finds the largest confusions: true class, predicted class, share of all wrong pixels."""
        wrong = self.confusion.sum(0) * (1 - np.eye(self.confusion.shape[-1], dtype=int))
        highest = np.argsort(-wrong, axis=None, kind='stable')[:number]
        pairs = zip(*np.unravel_index(highest, wrong.shape))
        return [(int(t), int(p), float(wrong[t, p] / wrong.sum())) for t, p in pairs if wrong[t, p]]


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
        UserError: Nothing in the test set is labelled, or a prediction is not finite.
    """
    num_classes = len(run.test_loader.dataset.metainfo['classes'])
    confusions = []
    for batch in run.test_loader:
        for sample, (ids, _) in zip(batch['data_samples'], run.predictor.predict(batch)):
            truth = sample.gt_sem_seg.data.squeeze(0).cpu().numpy()  # (H, W)
            counts = confusion_of(truth, ids.cpu().numpy(), num_classes)
            # by image, not summed: the verdict asks what a single one changes
            confusions.append(counts.astype(np.int32))
    evaluation = Evaluation(np.stack(confusions))
    if not evaluation.shown.any():
        key = f'{run.name}: test_dataloader.dataset'
        raise UserError(key, 'no pixel with a class', 'labelled images')
    return evaluation


def predict_test_images(run: Run, indices: Sequence[int]) -> list[Picture]:
    """Predicts chosen images of the test set, in the order of their indices."""
    loader = run.test_loader
    pictures = []
    for index, item in zip(indices, Subset(loader.dataset, indices)):
        ((ids, _),) = run.predictor.predict(loader.collate_fn([item]))
        sample = item['data_samples']
        path = sample.metainfo.get('img_path')
        image = as_rgb(item['inputs'].numpy().transpose(1, 2, 0))
        name = Path(path).name if path else f'image {index}'
        truth = sample.gt_sem_seg.data.squeeze(0).numpy()
        pictures.append(Picture(name, image, truth, ids.cpu().numpy()))
    return pictures
