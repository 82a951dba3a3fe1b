"""Construction of a bank's perturbations from their configs."""

from collections.abc import Mapping

from mmseg.registry import MODELS
from torch import nn

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import close_names, nearest

from .base import Perturbation
from .feature_noise import FeatureNoise
from .intermediate_vat import IntermediateVAT
from .spatial_dropout import SpatialDropout
from .spatial_masks import ContextMasking, FeatureDrop, GuidedCutout, ObjectMasking

# Order of the decoders in a bank and so of the rows of its parameters in a checkpoint. It cannot
# be the order in the config: mmengine sorts the keys of the configs that it dumps.
PAPER_ORDER = (
    IntermediateVAT,
    SpatialDropout,
    GuidedCutout,
    ContextMasking,
    ObjectMasking,
    FeatureDrop,
    FeatureNoise,
)


def build_perturbations(configs: dict[str, dict]) -> nn.ModuleDict:
    """Builds perturbations, sorted by type in the paper's order, new types last, then by name.

    Raises:
        UserError: If `configs` is no dict, a type is unknown, or a name would count as a loss.
    """
    known = [c.__name__ for c in _concrete_subclasses(Perturbation)]  # type: ignore[type-abstract]
    built = []
    if not isinstance(configs, Mapping):
        raise UserError(
            f'model.auxiliary_head.perturbations={configs!r}', '', 'a dict of perturbations by name'
        )
    for name, config in configs.items():
        key = f'model.auxiliary_head.perturbations.{name}'
        # its L_u is logged under the name
        if 'loss' in name:
            expected = 'another name: mmengine adds every logged value named so to the loss'
            raise UserError(key, 'a name with "loss" in it', expected)
        kind = config.get('type') if isinstance(config, dict) else None
        if kind is None:  # perhaps a misspelt name, merged as a new entry
            near = close_names(name, [other for other in configs if other != name])
            expected = f'expected type=..., one of {", ".join(known)}'
            raise UserError(key, f'no type; {f"did you mean {near[0]}?" if near else expected}')
        if kind not in known and not isinstance(kind, type):
            raise UserError(key, f'no perturbation {kind!r}', nearest(str(kind), known))
        built.append((name, MODELS.build(config)))
    return nn.ModuleDict(sorted(built, key=_place))


def _place(named: tuple[str, Perturbation]) -> tuple[int, str]:
    name, perturbation = named
    kind = type(perturbation)
    return PAPER_ORDER.index(kind) if kind in PAPER_ORDER else len(PAPER_ORDER), name


def _concrete_subclasses(cls: type[Perturbation]) -> list[type[Perturbation]]:
    below = [found for child in cls.__subclasses__() for found in _concrete_subclasses(child)]
    return below if getattr(cls, '__abstractmethods__', None) else [cls, *below]
