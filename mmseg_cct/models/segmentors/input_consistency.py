"""The baselines with consistency on images, supplement A of the paper.

Mean Teacher (Tarvainen & Valpola, NeurIPS 2017) and virtual adversarial training (Miyato et al.,
2018).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.modes import all_but_batch_norm, eval_mode, frozen_running_statistics
from mmseg_cct.models.layers.sample_fields import stack_field

from .any_decoder import AnyDecoderSegmentor, TakesTeacher, require_pairs


class InputConsistencySegmentor(AnyDecoderSegmentor):
    """Penalises the distance between two predictions on an unlabelled image.

    Unlike CCT, it has one decoder and perturbs the image or the weights, not z. A subclass defines
    the pair of predictions. Inference is that of `EncoderDecoder`.

    Args:
        loss_consistency: Config of the distance, a `ConsistencyLoss`.
        **kwargs: Arguments of `EncoderDecoder`.
    """

    def __init__(self, loss_consistency: dict, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loss_consistency = MODELS.build(loss_consistency)

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u from images `(N, 3, H, W)` under 'labeled' and 'unlabeled'.

        L_s is under the keys of `EncoderDecoder`, ω_u L_u under `aux.loss` and L_u, for the log,
        under `aux.consistency`.
        """
        require_pairs(inputs, type(self).__name__)
        # labelled images, as `EncoderDecoder` learns them: L_s
        features = self.extract_feat(inputs['labeled'])
        losses = self._decode_head_forward_train(features, data_samples['labeled'])
        if self.with_auxiliary_head:
            losses.update(self._auxiliary_head_forward_train(features, data_samples['labeled']))

        # unlabelled images: the distance of the two predictions, L_u
        seg_logits, probabilities = self.predict_pair(inputs['unlabeled'])
        valid = stack_field(data_samples['unlabeled'], 'valid_mask', seg_logits.shape[-2:])
        consistency = self.loss_consistency(seg_logits, probabilities, valid)
        losses['aux.loss'] = self.loss_consistency.loss_weight * consistency
        losses['aux.consistency'] = consistency.detach()
        return losses

    @abstractmethod
    def predict_pair(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns student logits, with gradient, and target probabilities, without one.

        Images are unlabelled, normalised, `(N, 3, H, W)`; both results are `(N, C, s·h, s·w)`.
        """


@MODELS.register_module()
class MeanTeacherSegmentor(TakesTeacher, InputConsistencySegmentor):
    """Penalises disagreement with an EMA teacher (https://arxiv.org/abs/1703.01780).

    The teacher comes from a `TeacherHook`, here with decay 0.99::

        model = dict(type='MeanTeacherSegmentor', loss_consistency=dict(type='MSEConsistency'))
        custom_hooks = [
            dict(type='TeacherHook', decay=0.99, evaluate='teacher', batch_statistics=True)
        ]

    As in the paper's comparison, student and teacher see the same images and differ only in their
    weights. The running statistics of the student's main decoder come from labelled images only.

    Args:
        loss_consistency: Config of the distance; the paper's is `MSEConsistency`.
        **kwargs: Arguments of `EncoderDecoder`.

    Raises:
        UserError: If there is no teacher when training starts.
    """

    def predict_pair(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns student logits and teacher probabilities."""
        # without a teacher the loss would compare the student with itself
        if self.teacher is None:
            raise UserError('custom_hooks', 'the model has no teacher', 'a TeacherHook')
        with torch.no_grad():
            probabilities = self.teacher(images).float().softmax(1)
        # the main decoder's statistics are those of labelled images, as they are at inference
        with frozen_running_statistics(self.decode_head):
            return self._forward(images), probabilities


@MODELS.register_module()
class InputVATSegmentor(InputConsistencySegmentor):
    """Penalises the change of the prediction under adversarial noise on the image.

    This is the VAT of https://arxiv.org/abs/1704.03976::

        model = dict(type='InputVATSegmentor', loss_consistency=dict(type='KLConsistency'))

    The clean prediction and the search for the noise run in float32 even under mixed precision:
    their differences are smaller than the rounding of float16. On a GPU from Ampere on, cuDNN's
    convolutions are TF32 nevertheless, unless `torch.backends.cudnn.allow_tf32` is False. Both run
    without dropout, which would drown the noise. Only the clean pass updates running statistics of
    BatchNorm, and only those of the encoder.

    Args:
        loss_consistency: Config of the distance; the paper's is `KLConsistency`.
        epsilon: ε, the L2 norm of one image's noise, in units of the normalised pixels. The default
            is the paper's value for I-VAT, as it gives none for images.
        xi: ξ, the L2 norm of one image's probing noise. I-VAT's 1e-6 would be as small as the
            rounding errors of float32.
        **kwargs: Arguments of `EncoderDecoder`; the backbone cannot recompute its activations
            (`with_cp`).
    """

    def __init__(
        self, loss_consistency: dict, epsilon: float = 2.0, xi: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(loss_consistency, **kwargs)
        self.epsilon = epsilon
        self.xi = xi

    def predict_pair(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the noisy image's logits and the clean image's probabilities."""
        # clean pass, search, noisy pass; only the first moves running statistics, the encoder's
        without_dropout = eval_mode(all_but_batch_norm(self))
        with torch.autocast(images.device.type, enabled=False), without_dropout:
            with torch.no_grad(), frozen_running_statistics(self.decode_head):
                probabilities = self._forward(images).softmax(1)
            with frozen_running_statistics(self):
                lengths = self.epsilon, self.xi
                noise = adversarial_noise(self._forward, images, probabilities, *lengths)
        with frozen_running_statistics(self):
            return self._forward(images + noise), probabilities


def adversarial_noise(
    predict: Callable[[Tensor], Tensor],
    images: Tensor,
    probabilities: Tensor,
    epsilon: float,
    xi: float,
) -> Tensor:
    """Adversarial noise r_adv of length ε, by one power iteration (Miyato et al., 2018).

    r_adv = εg/‖g‖ per image, where g is the gradient of KL(p ‖ predict(x + ξd)) with respect to a
    random d of length 1. No parameter gets a gradient.

    Images x are normalised, `(N, 3, H, W)`; `predict` maps them to logits `(N, C, s·h, s·w)`, and p
    is the softmax of `predict(x)`. ε and ξ are the L2 norms of one image's r_adv and probing noise.
    """
    # one step of the power iteration starts from a random direction
    direction = _unit_length(torch.randn_like(images)).requires_grad_()
    with torch.enable_grad():
        log_q = predict(images + xi * direction).log_softmax(1)
        divergence = F.kl_div(log_q, probabilities, reduction='sum')
        (gradient,) = torch.autograd.grad(divergence, direction)
    return epsilon * _unit_length(gradient)


def _unit_length(noise: Tensor) -> Tensor:
    flat, tiny = noise.flatten(1), torch.finfo(noise.dtype).tiny
    # The squares of a saturated model's gradient underflow: scale by the largest entry first.
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=tiny)
    return F.normalize(flat, eps=tiny).view_as(noise)
