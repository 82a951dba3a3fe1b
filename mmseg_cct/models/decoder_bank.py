"""The K perturbed auxiliary decoders as one module, and the losses on their predictions."""

import difflib
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from mmseg_cct.errors import UserError

from .chunked_loss import chunked_loss
from .chunking import Chunking, CollectChunks
from .decoders import Chain, DecoderGroup, decode
from .losses import PixelTargets, PixelTerm
from .perturbations import Perturbation, PerturbationContext
from .subpixel import from_subpixel_layout, icnr_, num_levels, to_subpixel_layout


@MODELS.register_module()
class PerturbedDecoderBank(BaseModule):
    """K auxiliary decoders, each on its own perturbed version of z.

    Shapes: `N` unlabelled images, `D` channels of z, `h×w` its size, `C` classes, `K` decoders, `s`
    the stride, `S` the feature positions that the losses look at.

    Args:
        in_channels: D.
        num_classes: C.
        perturbations: By name, the config of each `Perturbation`.
        loss_consistency: Config of L_u.
        stride: s, a power of two.
        context_classes: Names or ids of the classes that are context, not objects.
        loss_weak: Config of L_w, or None.
        loss_pairwise: Config of L_pw, or None.
        position_fraction: Share of the feature positions that the losses look at, drawn anew in
            each iteration. Below 1 the losses are unbiased estimates, cheaper in time and memory.
        memory_budget: Bytes of the largest temporary; None picks by device.
        compile: 'auto' compiles the decoders where a compiler is found, True always, False never.
        final_activation: Whether the decoders end in a ReLU, as in the public code.
        in_index: Which of the neck's outputs is z.
        init_cfg: Initialisation of the weights; by default as in the main decoder.

    Raises:
        UserError: If a perturbation is unknown, none is left, or a value is out of range.
    """

    def __init__(self,
                 in_channels: int,
                 num_classes: int,
                 perturbations: dict[str, dict],
                 loss_consistency: dict,
                 stride: int = 8,
                 context_classes: Sequence[str | int] = ('background', ),
                 loss_weak: dict | None = None,
                 loss_pairwise: dict | None = None,
                 position_fraction: float = 1.0,
                 memory_budget: int | None = None,
                 compile: bool | str = 'auto',
                 final_activation: bool = False,
                 in_index: int = -1,
                 init_cfg: dict | list | None = None) -> None:
        super().__init__(init_cfg)
        if not 0 < position_fraction <= 1:
            raise UserError(f'model.auxiliary_head.position_fraction={position_fraction}: expected '
                            'a value in (0, 1]')
        self.stride = stride
        self.num_classes = num_classes
        self.context_classes = tuple(context_classes)
        self.position_fraction = position_fraction
        self.final_activation = final_activation
        self.in_index = in_index
        self.chunking = Chunking(memory_budget, compile)

        self.perturbations = nn.ModuleDict(
            {name: _build_perturbation(name, cfg) for name, cfg in perturbations.items()})
        self.num_decoders = sum(p.num_decoders for p in self.perturbations.values())
        if not self.num_decoders:
            raise UserError('model.auxiliary_head.perturbations: no decoder is left; expected '
                            'num_decoders >= 1 in at least one of them')

        self.loss_consistency = MODELS.build(loss_consistency)
        self.loss_weak = MODELS.build(loss_weak) if loss_weak else None
        self.loss_pairwise = MODELS.build(loss_pairwise) if loss_pairwise else None

        self.proj = nn.Parameter(torch.empty(self.num_decoders, num_classes, in_channels))
        for projection in self.proj:
            nn.init.kaiming_normal_(projection, nonlinearity='relu')
        self.up = nn.ModuleList(
            _StackedSubPixelConv(self.num_decoders, num_classes)
            for _ in range(num_levels(stride)))

    @property
    def chain(self) -> Chain:
        """The sub-pixel convolutions of all decoders."""
        return Chain(
            tuple(level.weight for level in self.up),
            tuple(level.bias.unsqueeze(-1) for level in self.up), self.final_activation)

    def group(self, chosen: slice) -> DecoderGroup:
        """Some of the decoders, as their perturbation sees them.

        Args:
            chosen: Which.

        Returns:
            The decoders.
        """
        return DecoderGroup(self.proj[chosen], self.chain.select(chosen), self.stride,
                            self.chunking)

    def loss(self, features: Sequence[Tensor], seg_logits: Tensor,
             data_samples: Sequence[SegDataSample]) -> dict[str, Tensor]:
        """Compares the auxiliary predictions with the main one.

        Args:
            features: The neck's outputs for the unlabelled images; z is `(N, D, h, w)`.
            seg_logits: `(N, C, H, W)`, the main decoder's prediction on them; a constant.
            data_samples: N samples; their `classes` resolve class names, and with L_w their
                `pseudo_sem_seg` holds the pseudo labels.

        Returns:
            `loss` = ω_u L_u + ω_w L_w + λ_pw L_pw, and for the log each term unweighted.
        """
        z = features[self.in_index]
        self._check_fit(z, seg_logits)
        seg_logits = self._at_decoder_size(seg_logits.detach().float(), z)
        positions = self._draw_positions(z)
        context = PerturbationContext(z, seg_logits, self._context_ids(data_samples), positions)

        size = self.chunking.size(z, self.num_decoders, self.num_classes, self.stride)
        chunks = CollectChunks.apply(size, _compute_dtype(z), *self.project(context))
        losses = dict(consistency=self.loss_consistency, weak_ce=self.loss_weak,
                      pairwise=self.loss_pairwise)
        losses = {name: loss for name, loss in losses.items() if loss is not None}
        total, values = chunked_loss(
            chunks, self.chain,
            self._terms(losses.values(), seg_logits, data_samples, positions), self.chunking)
        return dict(loss=total, **{name: value.sum() for name, value in zip(losses, values)})

    def forward(self, features: Sequence[Tensor], seg_logits: Tensor,
                data_samples: Sequence[SegDataSample] = ()) -> Tensor:
        """Predicts with every auxiliary decoder: for analysis, not for training.

        Args:
            features: As in `loss`.
            seg_logits: As in `loss`.
            data_samples: As in `loss`.

        Returns:
            `(K, N, C, s·h, s·w)` logits.
        """
        z = features[self.in_index]
        context = PerturbationContext(z, self._at_decoder_size(seg_logits.detach(), z),
                                      self._context_ids(data_samples))
        projected = torch.cat(self.project(context)).transpose(1, 2).flatten(2)
        decoded = decode(projected.to(_compute_dtype(z)), self.chain)
        n, _, h, w = z.shape
        return torch.stack([from_subpixel_layout(d, (n, h, w), self.stride) for d in decoded])

    def project(self, context: PerturbationContext) -> list[Tensor]:
        """Perturbs z for every decoder and applies its projection.

        Args:
            context: z and what the perturbations of one iteration share.

        Returns:
            `(k, N, C, S)` of each perturbation that has decoders.
        """
        features = context.at_positions(context.features)
        projected, first = [], 0
        for perturbation in self.perturbations.values():
            chosen = slice(first, first + perturbation.num_decoders)
            first = chosen.stop
            if perturbation.num_decoders:
                projected.append(perturbation.project(features, self.group(chosen), context))
        return projected

    def _check_fit(self, z: Tensor, seg_logits: Tensor) -> None:
        for key, value, expected, whose in (
            ('in_channels', self.proj.shape[-1], z.shape[1], 'the channels of the features'),
            ('num_classes', self.num_classes, seg_logits.shape[1], "the main decoder's")):
            if value != expected:
                raise UserError(f'model.auxiliary_head.{key}={value}: expected {expected}, {whose}')

    def _draw_positions(self, z: Tensor) -> Tensor | None:
        """A random subset of the feature positions, the same in every image; None for all."""
        total = z.shape[-2] * z.shape[-1]
        chosen = max(round(self.position_fraction * total), 1)
        return None if chosen == total else torch.randperm(total, device=z.device)[:chosen]

    def _at_decoder_size(self, seg_logits: Tensor, z: Tensor) -> Tensor:
        """Resizes the prediction of a main decoder of another stride."""
        size = (z.shape[-2] * self.stride, z.shape[-1] * self.stride)
        if seg_logits.shape[-2:] == size:
            return seg_logits
        return F.interpolate(seg_logits, size, mode='bilinear', align_corners=False)

    def _terms(self, losses: Iterable[nn.Module], seg_logits: Tensor,
               data_samples: Sequence[SegDataSample],
               positions: Tensor | None) -> list[PixelTerm]:
        """The losses against main prediction and pseudo labels, in sub-pixel layout."""
        probabilities = to_subpixel_layout(seg_logits, self.stride).softmax(0)
        labels = self._pseudo_labels(seg_logits, data_samples)
        targets = PixelTargets(probabilities, labels, self.num_decoders, positions)
        return [loss.term(targets) for loss in losses]

    def _pseudo_labels(self, seg_logits: Tensor,
                       data_samples: Sequence[SegDataSample]) -> Tensor | None:
        if self.loss_weak is None or not all('pseudo_sem_seg' in s for s in data_samples):
            return None
        labels = torch.stack([sample.pseudo_sem_seg.data for sample in data_samples])
        size = seg_logits.shape[-2:]
        if labels.shape[-2:] != size:  # nearest in float: ids below 2²⁴ pass unchanged
            labels = F.interpolate(labels.float(), size, mode='nearest').long()
        return to_subpixel_layout(labels, self.stride)

    def _context_ids(self, data_samples: Sequence[SegDataSample]) -> list[int]:
        """Ids of the context classes, looked up in the class names that the samples carry."""
        classes = data_samples[0].metainfo.get('classes') if len(data_samples) else None
        ids = []
        for name in self.context_classes:
            if not isinstance(name, str):
                if not 0 <= name < self.num_classes:
                    raise UserError(f'model.auxiliary_head.context_classes: {name}; expected names '
                                    f'or ids from 0 to {self.num_classes - 1}')
                ids.append(name)
                continue
            if classes is None:
                raise UserError(f'model.auxiliary_head.context_classes: {name!r} is a name, and '
                                'the unlabelled samples carry no `classes`; expected a '
                                'SemiSegDataset, or class ids')
            if name not in classes:
                raise UserError(f'model.auxiliary_head.context_classes: no class {name!r}; '
                                f'{_nearest(name, classes)}')
            ids.append(classes.index(name))
        return ids


class _StackedSubPixelConv(nn.Module):
    """Parameters of one level of K decoders: `weight (K, 4C, C)`, `bias (K, 4C)`."""

    def __init__(self, num_decoders: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_decoders, 4 * num_classes, num_classes))
        self.bias = nn.Parameter(torch.empty(num_decoders, 4 * num_classes))
        icnr_(self.weight, self.bias)


def _compute_dtype(features: Tensor) -> torch.dtype:
    """The type that a matrix product of the features has: autocast's, or their own."""
    nothing = features.new_empty(0, 0)
    return (nothing @ nothing).dtype


def _build_perturbation(name: str, cfg: dict) -> Perturbation:
    known = [c.__name__ for c in _concrete_subclasses(Perturbation)]  # type: ignore[type-abstract]
    if cfg.get('type') not in known and not isinstance(cfg.get('type'), type):
        raise UserError(f'model.auxiliary_head.perturbations.{name}: no perturbation '
                        f'{cfg.get("type")!r}; {_nearest(str(cfg.get("type")), known)}')
    return MODELS.build(cfg)


def _concrete_subclasses(cls: type[Perturbation]) -> list[type[Perturbation]]:
    below = [found for child in cls.__subclasses__() for found in _concrete_subclasses(child)]
    return below if getattr(cls, '__abstractmethods__', None) else [cls, *below]


def _nearest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f'did you mean {" or ".join(close)}?' if close else f'expected one of {", ".join(names)}'
