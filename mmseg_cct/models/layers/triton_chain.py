"""The last level of the auxiliary decoders as one GPU kernel, in Triton.

Three of four values of a decoder are logits, and a loss passes over them some six times. The kernel
takes a tile of columns through the last sub-pixel convolution, softmax, losses, agreement and back
to the gradients, so no prediction is ever written. The levels before it are batched products.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .stacked_decoders import Chain, decode_backward, decode_levels

# Columns of a tile and warps, of which the first step measures the best among those that do not
# spill many registers at up to 31 channels (see benchmarks/triton_kernel.py). On an H200 the first
# wins in bfloat16, the second in TensorFloat-32 and the last in exact float32, for which a GPU with
# 100 KiB of shared memory has room only in the third.
CONFIGS = [
    triton.Config({'T': columns}, num_warps=warps, num_stages=1)
    for columns, warps in ((16, 1), (16, 2), (16, 4), (32, 4), (64, 8))
]


@triton.jit
def last_level(
    x, w, b, p, main, soft, hard, labels, soft_factor, hard_factor,
    gx, gw, gb, values, agreeing, M,
    B: tl.constexpr, C: tl.constexpr, BP: tl.constexpr, CP: tl.constexpr,
    RELU_IN: tl.constexpr, RELU: tl.constexpr,
    SOFT: tl.constexpr, KL: tl.constexpr, HARD: tl.constexpr,
    PRECISION: tl.constexpr, T: tl.constexpr, LOG2_E: tl.constexpr = 1.4426950408889634,
):  # fmt: skip
    """Adds up losses and gradients of a decoder, k, over some of the tiles of columns.

    Features x `(K, B, M)` and their gradient gx, which may take their place; weights w `(K, 4C, B)`
    and biases b `(K, 4C)`, their gradients gw, gb with a first axis of parts; the main decoder's
    probabilities p `(C, 4, M)` and class `(4, M)`; pixel weights soft and hard, labels and agreeing
    `(4, M)`; the terms' factors; values `(parts, K, 2)`. BP and CP are powers of two, BP above B
    and CP at least C.

    The four sub-pixels of a tile are one product: features are read, and their gradient is written,
    once. Channel B of the features is 1 and its weight the bias, whose gradient so comes with the
    weights'.
    """
    k, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    row_of_sums = part * tl.num_programs(0) + k
    x += k * B * M
    gx += k * B * M
    w += k * 4 * C * B
    b += k * 4 * C
    gw += row_of_sums * 4 * C * B
    gb += row_of_sums * 4 * C
    channel, n = tl.arange(0, BP), tl.arange(0, 4 * CP)
    is_bias = channel == B
    # columns of the product are sub-pixel, then class; a row of the weight is class, then sub-pixel
    row, real = n % CP * 4 + n // CP, n % CP < C
    cells = real[:, None] & (channel[None, :] < B)
    weight = tl.load(w + row[:, None] * B + channel[None, :], mask=cells, other=0.0)
    # classes up to CP: less than any logit, and finite, as their gradient, 0, is multiplied by it
    bias = tl.load(b + row, mask=real, other=-30000.0)
    weight = tl.where(is_bias[None, :], bias[:, None], weight).to(x.dtype.element_ty)
    classes = tl.arange(0, CP)[None, None, :]
    soft_sum = tl.zeros((T, 4), tl.float32)
    hard_sum = tl.zeros((T, 4), tl.float32)
    dw = tl.zeros((4 * CP, BP), tl.float32)
    for tile in range(part, tl.cdiv(M, T), tl.num_programs(1)):
        column = tile * T + tl.arange(0, T)
        inside = column[:, None] < M
        cell = channel[None, :] * M + column[:, None]
        live = (channel[None, :] < B) & inside
        X = tl.load(x + cell, mask=live, other=0.0)
        if RELU_IN:  # written so that NaN stays NaN, here and below
            X = tl.where(X < 0, 0.0, X).to(X.dtype)
        X += tl.where(is_bias[None, :], 1.0, 0.0).to(X.dtype)
        Y = tl.dot(X, tl.trans(weight), input_precision=PRECISION)
        Y = tl.reshape(Y, (T, 4, CP))
        if RELU:
            Y = tl.where((Y < 0) & (classes < C), 0.0, Y)
        pixel = tl.arange(0, 4)[None, :] * M + column[:, None]
        top = tl.max(Y, 2)
        q = tl.exp2(Y * LOG2_E - (top * LOG2_E)[:, :, None])
        total = tl.sum(q, 2)
        q = q * (1.0 / total)[:, :, None]
        # counts are whole numbers, so their order does not matter
        chosen = tl.load(main + pixel, mask=inside, other=0).to(tl.int32)
        at_main_class = tl.sum(tl.where(classes == chosen[:, :, None], Y, 0.0), 2)
        agrees = tl.where(at_main_class == top, 1.0, 0.0)
        tl.atomic_add(agreeing + pixel, agrees, mask=inside, sem='relaxed')
        g = tl.zeros((T, 4, CP), tl.float32)
        if SOFT:
            at = p + classes * 4 * M + pixel[:, :, None]
            P = tl.load(at, mask=(classes < C) & inside[:, :, None], other=0.0)
            counts = tl.load(soft + pixel, mask=inside, other=0.0) * (1.0 / C)
            scale = (tl.load(soft_factor) * counts)[:, :, None]
            d = q - P
            if KL:
                log_q = Y - (top + tl.log(total))[:, :, None]
                distance = tl.where(P == 0, 0.0, P * (tl.log(P) - log_q))
                g += scale * d
            else:
                distance = d * d
                pull = d * q
                g += 2 * scale * (pull - q * tl.sum(pull, 2)[:, :, None])
            soft_sum += tl.sum(distance, 2) * counts
        if HARD:
            label = tl.load(labels + pixel, mask=inside, other=0).to(tl.int32)
            counts = tl.load(hard + pixel, mask=inside, other=0.0)
            is_label = classes == label[:, :, None]
            at_label = tl.sum(tl.where(is_label, Y, 0.0), 2)
            hard_sum += counts * (top + tl.log(total) - at_label)
            scale = (tl.load(hard_factor) * counts)[:, :, None]
            g += scale * (q - tl.where(is_label, 1.0, 0.0))
        if RELU:
            g = tl.where(Y > 0, g, 0.0)
        G = tl.reshape(g, (T, 4 * CP)).to(X.dtype)
        dw = tl.dot(tl.trans(G), X, dw, input_precision=PRECISION)
        dx = tl.dot(G, weight, input_precision=PRECISION)
        if RELU_IN:
            dx = tl.where(X > 0, dx, 0.0)
        tl.store(gx + cell, dx.to(X.dtype), mask=live)
    tl.store(gw + row[:, None] * B + channel[None, :], dw, mask=cells)
    tl.store(gb + row, tl.sum(tl.where(is_bias[None, :], dw, 0.0), 1), mask=real)
    tl.store(values + row_of_sums * 2, tl.sum(tl.sum(soft_sum, 1), 0))
    tl.store(values + row_of_sums * 2 + 1, tl.sum(tl.sum(hard_sum, 1), 0))


def offered(dtype: torch.dtype, precision: str) -> list[triton.Config]:
    """Selects the configurations for features of a type."""
    warps = 1 if dtype.itemsize == 2 else 2 if precision == 'tf32' else 4
    return [config for config in CONFIGS if config.num_warps >= warps]


_tuned = triton.autotune(
    CONFIGS,
    key=['B', 'C', 'SOFT', 'KL', 'HARD', 'PRECISION'],
    reset_to_zero=['agreeing'],
    restore_value=['x'],
    prune_configs_by=dict(
        early_config_prune=lambda _, arguments, **fixed: offered(
            arguments['x'].dtype, fixed['PRECISION']
        )
    ),
)(last_level)


@dataclass
class TritonChain:
    """The kernel with the squared error or, if `kl`, the divergence to the main prediction."""

    kl: bool

    def losses(
        self,
        features: Tensor,
        chain: Chain,
        main_logits: Tensor,
        maps: Sequence[Tensor | None],
        factors: Sequence[Tensor],
    ) -> tuple[tuple[Tensor, list[Tensor], list[Tensor]], Tensor, Tensor]:
        """Computes what `NativeChain.losses` does, on a GPU and in the features' type.

        Sums are in float32, partial ones are added in order.
        """
        lower_levels = Chain(chain.weights[:-1], chain.biases[:-1], final_activation=False)
        outputs = decode_levels(features, lower_levels)
        weight, bias = chain.weights[-1], chain.biases[-1]
        decoders, rows, width = weight.shape
        x = outputs[-1].reshape(decoders, width, -1).contiguous()
        probabilities = main_logits.float().softmax(0).contiguous()
        soft, hard, labels = (
            m if m is None else m.to(d).contiguous()
            for m, d in zip(maps, (torch.float32, torch.float32, torch.int64))
        )
        columns = x.shape[-1]
        cores = 1  # multiprocessors
        if x.is_cuda:
            cores = torch.cuda.get_device_properties(x.device).multi_processor_count
        # enough programs to keep all of them busy to the end
        parts = max(min(16 * cores // decoders, triton.cdiv(columns, 64)), 1)
        grad = x if lower_levels.weights else torch.empty_like(x)  # features are the caller's
        weights = x.new_empty(parts, *weight.shape, dtype=torch.float32)
        biases = x.new_empty(parts, *bias.shape, dtype=torch.float32)
        values = x.new_empty(parts, decoders, 2, dtype=torch.float32)
        agreeing = torch.zeros_like(probabilities[0])
        exact = x.dtype == torch.float32 and torch.get_float32_matmul_precision() == 'highest'
        precision = 'tf32x3' if exact else 'tf32'
        launch: Any = _tuned
        config: dict[str, Any] = {}
        if not x.is_cuda:  # Triton's interpreter
            launch, config = last_level, {'T': 64}
        elif torch.are_deterministic_algorithms_enabled():  # the fastest may differ by run
            launch, config = last_level, offered(x.dtype, precision)[0].all_kwargs()
        with torch.cuda.device_of(x):  # Triton launches on the current device
            launch[decoders, parts](
                *(x, weight.contiguous(), bias.contiguous(), probabilities),
                main_logits.argmax(0),
                *(probabilities if m is None else m for m in (soft, hard, labels)),
                *(factor.float() for factor in factors),
                *(grad, weights, biases, values, agreeing, columns),
                B=width,
                C=rows // 4,
                BP=max(triton.next_power_of_2(width + 1), 16),
                CP=max(triton.next_power_of_2(rows // 4), 16),
                RELU_IN=bool(lower_levels.weights),
                RELU=chain.final_activation,
                SOFT=soft is not None,
                KL=self.kl,
                HARD=hard is not None,
                PRECISION=precision,
                **config,
            )
        grad, grad_weights, grad_biases = decode_backward(outputs, lower_levels, grad)
        grad_weights.append(weights.sum(0).to(weight.dtype))
        grad_biases.append(biases.sum(0).to(bias.dtype))
        return (grad, grad_weights, grad_biases), values.sum(0).T, agreeing
