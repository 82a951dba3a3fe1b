"""A made-up checkpoint of the authors' public code."""

import torch

from mmseg_cct.apis.convert import SHARED_NAMES

C, D, K = 3, 5, 4


def decoder(prefix, generator):
    """A decoder's weights in the public code's names and shapes."""
    state = {f'{prefix}.upsample.0.weight': torch.randn(C, D, 1, 1, generator=generator)}
    for level in (1, 2, 3):
        for part, shape in (('weight', (4 * C, C, 1, 1)), ('bias', (4 * C,))):
            values = torch.randn(shape, generator=generator)
            state[f'{prefix}.upsample.{level}.conv.{part}'] = values
    return state


def public_state(num_decoders=K, module=True):
    """A checkpoint of the public code, its encoder shrunk to a number per weight."""
    generator = torch.Generator().manual_seed(0)
    state = {name: torch.randn(2, generator=generator) for name in SHARED_NAMES}
    state.update(decoder('main_decoder', generator))
    for index in range(num_decoders):
        state.update(decoder(f'aux_decoders.{index}', generator))
    return {('module.' if module else '') + name: value for name, value in state.items()}
