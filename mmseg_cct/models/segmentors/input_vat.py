"""Virtual adversarial training on images (Miyato et al., 2018), a baseline of supplement A."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.modes import all_but_batch_norm, eval_mode, frozen_running_statistics

from .input_consistency import InputConsistencySegmentor


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

    Args:
        predict: Maps images to logits `(N, C, s·h, s·w)`.
        images: x, normalised, `(N, 3, H, W)`.
        probabilities: p, the softmax of `predict(x)`, `(N, C, s·h, s·w)`.
        epsilon: ε, L2 norm of one image's r_adv.
        xi: ξ, L2 norm of one image's probing noise.

    Returns:
        r_adv, `(N, 3, H, W)`.
    """
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
        **kwargs: Arguments of `EncoderDecoder`.

    Raises:
        UserError: If the backbone computes its activations again (`with_cp`).
    """

    def __init__(
        self,
        loss_consistency: dict,
        epsilon: float = 2.0,
        xi: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(loss_consistency, **kwargs)
        if any(getattr(module, 'with_cp', False) for module in self.backbone.modules()):
            raise UserError(
                'model.backbone.with_cp=True',
                'InputVATSegmentor takes gradients with respect to the images, which '
                'checkpointing cannot',
                'False',
            )
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
                noise = adversarial_noise(
                    self._forward, images, probabilities, self.epsilon, self.xi
                )
        with frozen_running_statistics(self):
            return self._forward(images + noise), probabilities
