"""K perturbed auxiliary decoders as one module, and the losses on their predictions."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.modes import precision_of_convolutions
from mmseg_cct.models.layers.sample_fields import stack_field
from mmseg_cct.models.layers.stacked_decoders import (
    Chain,
    DecoderGroup,
    ScatterInto,
    decode,
    project_at_once,
)
from mmseg_cct.models.layers.subpixel import (
    from_subpixel_layout,
    icnr_,
    level_channels,
    require_stride,
    to_subpixel_layout,
)
from mmseg_cct.models.losses import PixelTargets, PixelTerm
from mmseg_cct.models.losses.chunked_loss import chunked_loss
from mmseg_cct.models.perturbations import DetectedObjects, GuidedCutout, PerturbationContext
from mmseg_cct.utils.log import say
from mmseg_cct.utils.ranges import in_unit, ranges
from mmseg_cct.utils.seed import seeded_random_state
from mmseg_cct.utils.text import nearest


@MODELS.register_module()
class PerturbedDecoderBank(BaseModule):
    """K auxiliary decoders, each on its own perturbation of z.

    A config with two decoders of one perturbation and six of another::

        auxiliary_head=dict(
            type='PerturbedDecoderBank',
            in_channels=512,
            num_classes=21,
            perturbations=dict(
                vat=dict(type='IntermediateVAT', num_decoders=2),
                drop=dict(type='FeatureDrop', num_decoders=6),
            ),
        )

    Shapes: `N` unlabelled images, `D` channels of z, `h×w` its size, `C` classes, `K` decoders, `B`
    channels of their activations, `s` the stride, `S` the feature positions that the losses look
    at.

    Args:
        in_channels: D, the channels of z.
        num_classes: C, the number of classes.
        perturbations: Config of each `Perturbation`, by name; None for the paper's 30 decoders.
            Decoders are sorted by the paper's order of perturbations, then by name, whatever the
            order here.
        loss_consistency: Config of L_u; None for the paper's `MSEConsistency`.
        stride: s, a power of two.
        channels: B, as in `PixelShuffleHead`.
        context_classes: Names or ids of the classes that are context, not objects.
        loss_weak: Config of L_w; None leaves it out.
        loss_pairwise: Config of L_pw; None leaves it out.
        position_fraction: Share in (0, 1] of the feature positions that the losses look at, drawn
            in each iteration. Below 1 the losses are unbiased estimates, cheaper in time and
            memory.
        memory_budget: Size of the largest temporary tensor in bytes; None picks it by device.
        compile: 'auto' runs the decoders by a native kernel on a CPU, if there is a compiler and
            the kernel has the losses, and on a GPU by a Triton kernel or `torch.compile`,
            whichever is faster in the first step; True always uses `torch.compile`, False none.
        final_activation: Whether the decoders end in a ReLU, as in the public code.
        kernel_init: Initialisation of the sub-pixel convolutions, as in `PixelShuffleHead`.
        log_terms: Whether to log L_u of each perturbation, the agreement with the main prediction
            and the share of pixels that count.
        in_index: Index of z in the outputs of the neck, or of the backbone if there is no neck;
            without effect if there is an `in_layer`.
        in_layer: Layer of the main decoder whose input is z instead: `'conv_seg'` gives the fused
            features that an MMSeg head classifies.
        init_cfg: Initialisation of the weights; by default as in the main decoder.

    Raises:
        UserError: If a perturbation is unknown, none is left, or a value is out of range.

    Examples:
        >>> drop = dict(drop=dict(type='FeatureDrop', num_decoders=2))
        >>> bank = PerturbedDecoderBank(16, 5, drop, context_classes=(0,), compile=False)
        >>> z, main_logits = torch.rand(2, 16, 6, 9), torch.randn(2, 5, 48, 72)
        >>> tuple(bank((z,), main_logits).shape)  # K decoders, N images
        (2, 2, 5, 48, 72)
        >>> sorted(bank.loss((z,), main_logits, data_samples=[]))
        ['agreement', 'consistency', 'drop.consistency', 'loss']
    """

    # The paper's, by their names in configs: in this order a bank has its decoders, and each class
    # has its own default number of them. A method changes these where a config names none.
    default_perturbations = dict(
        vat=dict(type='IntermediateVAT'),
        dropout=dict(type='SpatialDropout'),
        guided_cutout=dict(type='GuidedCutout'),
        context_masking=dict(type='ContextMasking'),
        object_masking=dict(type='ObjectMasking'),
        feature_drop=dict(type='FeatureDrop'),
        feature_noise=dict(type='FeatureNoise'),
    )

    @ranges(position_fraction=in_unit)
    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        perturbations: dict[str, dict] | None = None,
        loss_consistency: dict | None = None,
        stride: int = 8,
        channels: int | None = None,
        context_classes: Sequence[str | int] = ('background',),
        loss_weak: dict | None = None,
        loss_pairwise: dict | None = None,
        position_fraction: float = 1.0,
        memory_budget: int | None = None,
        compile: bool | str = 'auto',
        final_activation: bool = False,
        kernel_init: str = 'identity',
        log_terms: bool = True,
        in_index: int = -1,
        in_layer: str | None = None,
        init_cfg: dict | list | None = None,
    ) -> None:
        super().__init__(init_cfg)
        widths = level_channels(stride, num_classes, channels)
        self.stride = stride
        self.num_classes = num_classes
        self.context_classes = tuple(context_classes)
        self.position_fraction = position_fraction
        self.final_activation = final_activation
        self.log_terms = log_terms
        self.in_index = in_index
        self.in_layer = in_layer
        self.chunking = Chunking(memory_budget, compile)

        configs = self.default_perturbations if perturbations is None else perturbations
        self.perturbations = _built_in_order(configs)
        self.num_decoders = sum(p.num_decoders for p in self.perturbations.values())
        if not self.num_decoders:
            expected = 'num_decoders >= 1 in at least one of them'
            raise UserError('model.auxiliary_head.perturbations', 'no decoder is left', expected)

        self.loss_consistency = MODELS.build(loss_consistency or dict(type='MSEConsistency'))
        self.loss_weak = MODELS.build(loss_weak) if loss_weak else None
        self.loss_pairwise = MODELS.build(loss_pairwise) if loss_pairwise else None

        width = widths[0][0] if widths else num_classes
        # of all decoders at once: K small products become one
        self.proj = nn.Parameter(torch.empty(self.num_decoders, width, in_channels))
        # A separate random state: encoder and main decoder then start like those of the supervised
        # baseline with the same seed, which makes the two trainings a pair.
        with seeded_random_state((torch.initial_seed() + 1) % 2**32):
            for projection in self.proj:
                nn.init.kaiming_normal_(projection, nonlinearity='relu')
            self.up = nn.ModuleList(
                _StackedSubPixelConv(self.num_decoders, *level, kernel_init) for level in widths
            )
        self.register_load_state_dict_post_hook(_allow_missing_bank)

    @property
    def slices(self) -> dict[str, slice]:
        """Places among the K decoders of each perturbation that has any, by its name."""
        counts = {name: p.num_decoders for name, p in self.perturbations.items() if p.num_decoders}
        ends = itertools.accumulate(counts.values())
        return {name: slice(end - counts[name], end) for name, end in zip(counts, ends)}

    @property
    def chain(self) -> Chain:
        """Sub-pixel convolutions of all decoders."""
        weights = tuple(level.weight for level in self.up)
        biases = tuple(level.bias.unsqueeze(-1) for level in self.up)
        return Chain(weights, biases, self.final_activation)

    def group(self, chosen: slice) -> DecoderGroup:
        """Selects the decoders of one perturbation."""
        return DecoderGroup(self.proj[chosen], self.chain.select(chosen), self.chunking)

    def detect(
        self, seg_logits: Tensor, size: tuple[int, int], data_samples: Sequence[SegDataSample]
    ) -> DetectedObjects | None:
        """Starts to look for the objects of `loss` in images of this size, before z is there.

        None if no perturbation asks for their boxes.
        """
        cutouts = (p for p in self.perturbations.values() if isinstance(p, GuidedCutout))
        if not any(p.num_decoders for p in cutouts):
            return None
        self._check_num_classes(seg_logits.shape[1])
        return DetectedObjects(_resized(seg_logits, size), self._context_ids_of(data_samples))

    def loss(
        self,
        features: Sequence[Tensor],
        seg_logits: Tensor,
        data_samples: Sequence[SegDataSample],
        objects: DetectedObjects | None = None,
    ) -> dict[str, Tensor]:
        """Computes the losses of the auxiliary predictions against the main one.

        Args:
            features: The neck's outputs for the unlabelled images; z is `(N, D, h, w)`.
            seg_logits: `(N, C, H, W)`, the main decoder's prediction; gets no gradient.
            data_samples: N samples; `classes` in their metainfo resolves names of classes,
                `pseudo_sem_seg` holds the pseudo labels of L_w, and no loss counts the pixels that
                `valid_mask` leaves out.
            objects: What `detect` found in `seg_logits`, if it was called.

        Returns:
            `loss` = ω_u L_u + ω_w L_w + λ_pw L_pw; for the log each term unweighted and the figures
            of `log_terms`.
        """
        # p(z) for each decoder, through its projection: K × B channels
        context = self._context(features, seg_logits, data_samples, self.position_fraction, objects)
        seg_logits, positions = context.seg_logits, context.positions
        with precision_of_convolutions(seg_logits.device):
            projected = self._project_all(context)

        # what the K predictions are compared with, and by which losses
        losses = dict(consistency=self.loss_consistency, weak_ce=self.loss_weak)
        losses['pairwise'] = self.loss_pairwise
        size = seg_logits.shape[-2:]
        targets = PixelTargets(
            seg_logits,
            None if self.loss_weak is None else stack_field(data_samples, 'pseudo_sem_seg', size),
            self.num_decoders,
            self.stride,
            positions,
            stack_field(data_samples, 'valid_mask', size),
        )
        terms = {name: loss.term(targets) for name, loss in losses.items() if loss is not None}

        # decodes and differentiates, one chunk of positions after the other
        with precision_of_convolutions(seg_logits.device):
            total, values, agreement = chunked_loss(
                projected, self.chain, list(terms.values()), targets, self.chunking, self.log_terms
            )

        # for the log: each term, L_u of each perturbation, and the agreement
        logged = {name: value.sum() for name, value in zip(terms, values)}
        if agreement is not None:
            logged.update(self._details(terms, values[0], targets.valid_pixels))
            valid = to_subpixel_layout(targets.valid_pixels, self.stride).flatten(0, 2)
            valid = (valid if positions is None else valid[..., positions]).flatten(1)
            logged['agreement'] = (agreement * valid).sum() / valid.sum().clamp(min=1)
        return dict(loss=total, **logged)

    def forward(
        self,
        features: Sequence[Tensor],
        seg_logits: Tensor,
        data_samples: Sequence[SegDataSample] = (),
    ) -> Tensor:
        """Predicts logits `(K, N, C, s·h, s·w)` with every auxiliary decoder, for analysis.

        Arguments are those of `loss`.
        """
        context = self._context(features, seg_logits, data_samples)
        decoded = decode(self._project_all(context), self.chain)
        n, _, h, w = context.features.shape
        return torch.stack([from_subpixel_layout(d, (n, h, w), self.stride) for d in decoded])

    @torch.no_grad()
    def disagreement(
        self,
        features: Sequence[Tensor],
        seg_logits: Tensor,
        data_samples: Sequence[SegDataSample] = (),
    ) -> Tensor:
        """Finds where auxiliary predictions have another class than the main one, for analysis.

        Arguments are those of `loss`. Returns `(K, N, s·h, s·w)`: 1 where the class differs, or 0.
        """
        context = self._context(features, seg_logits, data_samples)
        projected = self._project_all(context)
        target = to_subpixel_layout(context.seg_logits, self.stride).flatten(2)
        main_class = target.max(0).indices  # several times as fast as argmax on a CPU
        flips = []
        for k in range(self.num_decoders):  # one at a time, so that K full predictions never exist
            one = slice(k, k + 1)
            decoded = decode(projected[one], self.chain.select(one))
            flips.append((decoded.max(1).indices != main_class).float())
        n, _, h, w = context.features.shape
        return from_subpixel_layout(torch.cat(flips), (n, h, w), self.stride).transpose(0, 1)

    def _context(
        self,
        features: Sequence[Tensor],
        seg_logits: Tensor,
        data_samples: Sequence[SegDataSample],
        position_fraction: float = 1.0,
        objects: DetectedObjects | None = None,
    ) -> PerturbationContext:
        """Collects what the perturbations see: z, main prediction at decoder size, positions."""
        z = features[self.in_index]
        size = (z.shape[-2] * self.stride, z.shape[-1] * self.stride)
        self._check_num_classes(seg_logits.shape[1])
        if data_samples and 'valid_mask' in data_samples[0]:
            images = data_samples[0].valid_mask.shape
            require_stride('model.auxiliary_head', self.stride, size, images, 'images')
        if objects is not None and objects.seg_logits.shape[-2:] != size:  # a rounded size of z
            objects = None
        seg_logits = _resized(seg_logits, size) if objects is None else objects.seg_logits
        # the same positions in every image; None for all
        total, positions = z.shape[-2] * z.shape[-1], None
        number = max(round(position_fraction * total), 1)
        if number < total:
            positions = torch.randperm(total, device=z.device)[:number]
        ids = self._context_ids_of(data_samples)
        return PerturbationContext(z, seg_logits, ids, positions, objects)

    def _project_all(self, context: PerturbationContext) -> Tensor:
        """Perturbs z for every decoder and projects it: `(K, B, N·S)` of the compute type.

        Either way it is `torch.cat` of what the perturbations project: where memory allows it, on a
        GPU, the unperturbed z is projected at once; else each part is written to its place.
        """
        features = context.chosen_features
        n, _, s = features.shape
        empty = features.new_empty(0, 0)
        dtype = (empty @ empty).dtype  # of a matrix product: autocast's, or their own
        slices = self.slices
        perturbations = [self.perturbations[name] for name in slices]
        # split at once: the gradient of several slices would be a sum of as many full tensors
        projections = self.proj.split([p.num_decoders for p in perturbations])
        chosen_groups = zip(map(self.group, slices.values()), projections)
        groups = [replace(group, projection=projection) for group, projection in chosen_groups]
        if self.chunking.copies(features) > 1:  # few products, and one copy of the parts
            project_at_once([g for p, g in zip(perturbations, groups) if p.projects_z], features)
            parts = (p.project(group, context) for p, group in zip(perturbations, groups))
            return torch.cat([part.transpose(1, 2).to(dtype) for part in parts]).flatten(2)
        # no copy when the parts are joined
        projected = features.new_empty((*self.proj.shape[:2], n, s), dtype=dtype)
        for perturbation, group, chosen in zip(perturbations, groups, slices.values()):
            part = perturbation.project(group, context)
            projected = ScatterInto.apply(projected, part.transpose(1, 2), chosen)
        return projected.flatten(2)

    def _details(
        self, terms: dict[str, PixelTerm], consistency: Tensor, valid_pixels: Tensor
    ) -> dict[str, Tensor]:
        """Figures for the log: L_u of each perturbation, and the share of valid pixels that count.

        `consistency` is `(K,)` and sums to L_u. Only terms that mask pixels have a share.
        """
        # each is at least 0, so their sum is their 1-norm: two operations on a GPU
        sums = torch._foreach_norm([consistency[chosen] for chosen in self.slices.values()], 1)
        shares = [self.num_decoders / (s.stop - s.start) for s in self.slices.values()]
        means = torch._foreach_mul(sums, shares)
        details = {f'{name}.consistency': mean for name, mean in zip(self.slices, means)}
        masked = {'weak_ce'} & terms.keys()
        if getattr(self.loss_consistency, 'confidence_threshold', None) is not None:
            masked.add('consistency')
        if masked:
            num_valid = valid_pixels.sum().clamp(min=1)
        for name in masked:
            details[f'pixels_{name}'] = terms[name].pixel_weight.sum() / num_valid
        return details

    def _check_num_classes(self, expected: int) -> None:
        # the kernels would read beyond the logits
        if self.num_classes != expected:
            key = f'model.auxiliary_head.num_classes={self.num_classes}'
            raise UserError(key, '', f"{expected}, the main decoder's")

    def _context_ids_of(self, data_samples: Sequence[SegDataSample]) -> list[int]:
        classes = data_samples[0].metainfo.get('classes') if len(data_samples) else None
        return self._context_ids(classes)

    def _context_ids(self, classes: Sequence[str] | None) -> list[int]:
        """Resolves the context classes to ids by the class names, if the samples carry them."""
        names = list(classes or ())
        for name in self.context_classes:
            if name not in names and name not in range(self.num_classes):
                ids = f'ids from 0 to {self.num_classes - 1}'
                expected = nearest(str(name), names, f'class names or {ids}' if names else ids)
                key = 'model.auxiliary_head.context_classes'
                raise UserError(key, f'no class {name!r}', expected)
        return [names.index(n) if isinstance(n, str) else n for n in self.context_classes]


class _StackedSubPixelConv(nn.Module):
    """Parameters of one level `B → C` of K decoders: `weight (K, 4C, B)`, `bias (K, 4C)`."""

    def __init__(self, number: int, in_channels: int, out_channels: int, kernel_init: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(number, 4 * out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(number, 4 * out_channels))
        icnr_(self.weight, self.bias, kernel_init)


def _resized(seg_logits: Tensor, size: tuple[int, int]) -> Tensor:
    """Resizes a main prediction, whose decoder may have another stride; detached."""
    seg_logits = seg_logits.detach()
    if seg_logits.shape[-2:] == size:
        return seg_logits
    return F.interpolate(seg_logits, size, mode='bilinear', align_corners=False)


def _built_in_order(configs: dict[str, dict]) -> nn.ModuleDict:
    """Builds perturbations, sorted by type in the paper's order, new types last, then by name.

    Raises:
        UserError: If one has a name that would count as a loss.
    """
    built = []
    for name, config in configs.items():
        key = f'model.auxiliary_head.perturbations.{name}'
        # its L_u is logged under the name, and mmengine sums whatever has "loss" in its own
        if 'loss' in name:
            raise UserError(key, 'a name with "loss" in it', 'another name')
        built.append((name, MODELS.build(config)))
    # The rows of a bank's parameters in a checkpoint are in this order. It cannot be that of the
    # config: mmengine sorts the keys of the configs that it dumps.
    paper = PerturbedDecoderBank.default_perturbations
    order = [config['type'] for config in paper.values()]
    ranks = {type_name: rank for rank, type_name in enumerate(order)}
    built.sort(key=lambda named: (ranks.get(type(named[1]).__name__, len(ranks)), named[0]))
    return nn.ModuleDict(built)


def _allow_missing_bank(bank: PerturbedDecoderBank, incompatible_keys: Any) -> None:
    """Accepts a checkpoint without auxiliary decoders, such as a published one."""
    keys = list(bank.state_dict())
    missing = incompatible_keys.missing_keys
    for prefix in [name.removesuffix(keys[0]) for name in missing if name.endswith(keys[0])]:
        of_bank = {prefix + key for key in keys}
        if of_bank <= set(missing):
            missing[:] = [name for name in missing if name not in of_bank]
            reason = 'predictions do not need them, a training starts with new ones'
            say(f'The checkpoint has no auxiliary decoders: {reason}')
