from .domain_discriminator import DomainDiscriminator
from .perturbed_decoder_bank import PerturbedDecoderBank
from .pixel_shuffle_head import PixelShuffleHead

__all__ = ['DomainDiscriminator', 'PerturbedDecoderBank', 'PixelShuffleHead']
