"""Mean Teacher (Tarvainen & Valpola, NeurIPS 2017), a baseline of the paper's supplement A."""

from typing import Any

import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.modes import frozen_running_statistics
from mmseg_cct.utils.ranges import number, ranges

from .input_consistency import InputConsistencySegmentor
from .teacher import TakesTeacher


@MODELS.register_module()
class MeanTeacherSegmentor(TakesTeacher, InputConsistencySegmentor):
    """Penalises disagreement with an EMA teacher (https://arxiv.org/abs/1703.01780).

    The teacher comes from a `TeacherHook`, here with decay 0.99::

        model = dict(type='MeanTeacherSegmentor', loss_consistency=dict(type='MSEConsistency'))
        custom_hooks = [
            dict(type='TeacherHook', decay=0.99, evaluate='teacher', batch_statistics=True)
        ]

    The running statistics of the student's main decoder come from labelled images only.

    Args:
        loss_consistency: Config of the distance; the paper's is `MSEConsistency`.
        noise_std: Standard deviation of the Gaussian noise added to the normalised images, drawn
            independently for student and teacher. With 0, as in the paper's comparison, the two
            differ only in their weights.
        **kwargs: Arguments of `EncoderDecoder`.

    Raises:
        UserError: If there is no teacher when training starts.
    """

    @ranges(noise_std=number(0))
    def __init__(self, loss_consistency: dict, noise_std: float = 0.0, **kwargs: Any) -> None:
        super().__init__(loss_consistency, **kwargs)
        self.noise_std = noise_std

    def predict_pair(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns student logits and teacher probabilities."""
        # without a teacher the loss would compare the student with itself
        if self.teacher is None:
            raise UserError(
                'custom_hooks', 'MeanTeacherSegmentor has no teacher', 'a TeacherHook among them'
            )
        with torch.no_grad():
            probabilities = self.teacher(self._with_noise(images)).float().softmax(1)
        # the main decoder's statistics are those of labelled images, as they are at inference
        with frozen_running_statistics(self.decode_head):
            return self._forward(self._with_noise(images)), probabilities

    def _with_noise(self, images: Tensor) -> Tensor:
        if self.noise_std == 0:
            return images
        return images + self.noise_std * torch.randn_like(images)
