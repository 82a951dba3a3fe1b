"""A trained network that labels images."""

from typing import Any

import numpy as np
import torch
from mmcv.transforms import Compose
from mmengine.config import Config
from torch import Tensor

from mmseg_cct.apis.inference import load_model, without_annotations
from mmseg_cct.apis.test import follow_test_size
from mmseg_cct.config.domains import pipeline_for_tests
from mmseg_cct.datasets.files.images import loader_in, read_image
from mmseg_cct.engine.prediction import fused_test_step
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import config_errors_as_one_line

from .sureness import levels_of


class Teacher:
    """The mean prediction of a trained network over views of an image.

    Where the views disagree, the mean is unsure.

    Args:
        config: Config of the training.
        checkpoint: Its checkpoint.
        device: Where to compute; by default the GPU of this process, if any.
        tta: Whether to average over the views of the config's `tta_pipeline`.

    Raises:
        UserError: The checkpoint does not fit the config, or there is no `tta_pipeline`.
    """

    def __init__(
        self, config: Config, checkpoint: str, device: str | None = None, tta: bool = True
    ) -> None:
        model = load_model(config, checkpoint, device)
        self.dataset_meta: dict[str, Any] = model.dataset_meta  # classes and palette
        self._test_step = fused_test_step(model)
        test = pipeline_for_tests(config)
        if tta and config.get('tta_pipeline') is None:
            raise UserError(config.filename, 'no tta_pipeline', 'one, or --no-tta')
        steps = follow_test_size(config.tta_pipeline, test) if tta else test
        with config_errors_as_one_line(config):
            self.pipeline = Compose(without_annotations(steps))
        self.loader = loader_in(self.pipeline)

    def load(self, path: str) -> np.ndarray:
        """Loads an image file `(H, W, C)` as the network sees it before any other transform."""
        return read_image(path) if self.loader is None else self.loader(dict(img_path=path))['img']

    @torch.no_grad()
    def __call__(self, path: str) -> tuple[np.ndarray, np.ndarray]:
        """Labels an image file: class ids and levels of sureness, both `(H, W)` uint8."""
        views = self.pipeline(dict(img_path=path))
        if not isinstance(views['inputs'], list):
            views = {key: [value] for key, value in views.items()}
        total: Any = 0
        for image, sample in zip(views['inputs'], views['data_samples']):
            (result,) = self._test_step(dict(inputs=[image], data_samples=[sample]))
            total = total + _probabilities(result.seg_logits.data)
        confidence, labels = (total / len(views['inputs'])).max(0)
        return labels.cpu().numpy().astype(np.uint8), levels_of(confidence.cpu().numpy())


def _probabilities(seg_logits: Tensor) -> Tensor:
    """Returns probabilities `(C, H, W)`.

    Of a single output MMSeg has taken the sigmoid already: it is the second of two classes.
    """
    if len(seg_logits) > 1:
        return seg_logits.float().softmax(0)
    second = seg_logits.float()
    return torch.cat([1 - second, second])
