"""The auxiliary branch written plainly: one decoder after the other, every prediction in full.

The tests compare the decoder bank's results with it, the benchmarks its speed. Each perturbation
follows its equation, regardless of cost.
"""

from collections.abc import Sequence

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmseg_cct.models import PerturbedDecoderBank


def conv_chain(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], final_activation: bool
) -> Tensor:
    """For each ×2: 1×1 convolution, ReLU, PixelShuffle; weights are `(4C, B, 1, 1)`."""
    for level, (weight, bias) in enumerate(zip(weights, biases)):
        x = F.conv2d(x, weight, bias)
        if final_activation or level < len(weights) - 1:
            x = F.relu(x)
        x = F.pixel_shuffle(x, 2)
    return x


class PlainDecoder(nn.Module):
    """1×1 convolution, then `conv_chain`."""

    def __init__(
        self,
        projection: Tensor,
        weights: list[Tensor],
        biases: list[Tensor],
        final_activation: bool,
    ) -> None:
        super().__init__()
        self.projection = nn.Parameter(projection.detach()[..., None, None].clone())
        self.weights = nn.ParameterList(w.detach()[..., None, None].clone() for w in weights)
        self.biases = nn.ParameterList(b.detach().flatten().clone() for b in biases)
        self.final_activation = final_activation

    def forward(self, features: Tensor) -> Tensor:
        """Maps `(N, D, h, w)` to `(N, C, s·h, s·w)`."""
        x = F.conv2d(features, self.projection)
        return conv_chain(x, self.weights, self.biases, self.final_activation)


class PlainBank(nn.Module):
    """The decoders of a bank, one module each."""

    def __init__(self, bank: PerturbedDecoderBank) -> None:
        super().__init__()
        chain = bank.chain
        self.decoders = nn.ModuleList(
            PlainDecoder(
                bank.proj[k],
                [w[k] for w in chain.weights],
                [b[k] for b in chain.biases],
                chain.final_activation,
            )
            for k in range(bank.num_decoders)
        )
        self.names = [name for name, p in bank.perturbations.items() for _ in range(p.num_decoders)]
        self.settings = bank.perturbations

    def predict(
        self, features: Tensor, seg_logits: Tensor, context_ids: Sequence[int]
    ) -> list[Tensor]:
        """Draws perturbations and decodes: K × `(N, C, H, W)` logits."""
        predictions = []
        for name, decoder in zip(self.names, self.decoders):
            perturbed = PLAIN[name](features, seg_logits, context_ids, decoder, self.settings[name])
            predictions.append(decoder(perturbed))
        return predictions

    def decode(self, perturbed: Tensor) -> list[Tensor]:
        """Decodes given features, `(K, N, D, h, w)`."""
        return [decoder(z) for decoder, z in zip(self.decoders, perturbed)]


def foreground(seg_logits: Tensor, context_ids: Sequence[int]) -> Tensor:
    """`(N, 1, H, W)` in {0, 1}: 1 where the largest class is not a context class."""
    winner = seg_logits.argmax(1, keepdim=True)
    return (~torch.isin(winner, winner.new_tensor(context_ids))).to(seg_logits.dtype)


def dropout(z, seg_logits, context_ids, decoder, setting):
    return F.dropout2d(z, setting.drop_ratio)


def feature_drop(z, seg_logits, context_ids, decoder, setting):
    attention = z.mean(1, keepdim=True)
    mask = torch.ones_like(attention)
    for i in range(len(z)):
        gamma = np.random.uniform(*setting.threshold_range)
        mask[i] = (attention[i] < gamma * attention[i].max()).to(z.dtype)
    return z * mask


def feature_noise(z, seg_logits, context_ids, decoder, setting):
    noise = torch.empty(1, *z.shape[1:]).uniform_(-setting.noise_range, setting.noise_range)
    return z * noise.to(z) + z


def context_masking(z, seg_logits, context_ids, decoder, setting):
    return z * F.interpolate(foreground(seg_logits, context_ids), z.shape[-2:], mode='nearest')


def object_masking(z, seg_logits, context_ids, decoder, setting):
    mask = 1 - foreground(seg_logits, context_ids)
    return z * F.interpolate(mask, z.shape[-2:], mode='nearest')


def guided_cutout(z, seg_logits, context_ids, decoder, setting):
    masks = foreground(seg_logits, context_ids).squeeze(1).cpu().numpy().astype(np.uint8)
    keep = np.ones_like(masks)
    least = setting.min_box_side * masks.shape[-1] / z.shape[-1]
    for mask, kept in zip(masks, keep):
        contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        for contour in contours:
            x, y, w, h = cv2.boundingRect(contour)
            if min(w, h) < least:
                continue
            cut_w, cut_h = int(w * setting.side_ratio), int(h * setting.side_ratio)
            x += np.random.randint(0, w - cut_w + 1)
            y += np.random.randint(0, h - cut_h + 1)
            kept[y : y + cut_h, x : x + cut_w] = 0
    mask = torch.from_numpy(keep).unsqueeze(1).to(z)
    return z * F.interpolate(mask, z.shape[-2:], mode='nearest')


def vat(z, seg_logits, context_ids, decoder, setting):
    return z + adversarial_noise(z, decoder, torch.randn_like(z), setting)


def adversarial_noise(z, decoder, noise, setting):
    """The finite difference at ξ, only as exact as the type resolves z + ξ·noise."""
    z = z.detach()
    norm = lambda r: r.flatten(1).norm(dim=1).view(-1, 1, 1, 1)  # noqa: E731
    with torch.enable_grad():
        with torch.no_grad():
            p = decoder(z).softmax(1)
        d = noise / norm(noise)
        d.requires_grad_()
        log_q = decoder(z + setting.xi * d).log_softmax(1)
        (gradient,) = torch.autograd.grad(F.kl_div(log_q, p, reduction='batchmean'), d)
        d = gradient / (norm(gradient) + setting.norm_floor)
    return setting.epsilon * d.detach()


PLAIN = dict(
    vat=vat,
    dropout=dropout,
    guided_cutout=guided_cutout,
    context_masking=context_masking,
    object_masking=object_masking,
    feature_drop=feature_drop,
    feature_noise=feature_noise,
)


def consistency_mse(predictions, probabilities, mask=None):
    return _mean([(p.softmax(1) - probabilities) ** 2 for p in predictions], mask)


def consistency_kl(predictions, probabilities, mask=None):
    return _mean(
        [probabilities * (probabilities.log() - p.log_softmax(1)) for p in predictions], mask
    )


def consistency_js(predictions, probabilities, mask=None):
    terms = []
    for prediction in predictions:
        q, p = prediction.softmax(1), probabilities
        m = (p + q) / 2
        terms.append(p * (p / m).log() / 2 + q * (q / m).log() / 2)
    return _mean(terms, mask)


def _mean(terms, mask):
    """Mean over decoders, the pixels of the mask and classes."""
    if mask is None:
        return torch.stack(terms).mean()
    counts = mask.unsqueeze(1).expand_as(terms[0])
    return torch.stack([(t * counts).sum() / counts.sum() for t in terms]).mean()


def pairwise(predictions):
    q = torch.stack([p.softmax(1) for p in predictions])
    return ((q - q.mean(0)) ** 2).mean(0).sum(1).mean()


def weak_ce(predictions, labels):
    return torch.stack([F.cross_entropy(p, labels, ignore_index=255) for p in predictions]).mean()
