"""Construction of a bank's perturbations from their configs."""

from mmseg.registry import MODELS
from torch import nn

from mmseg_cct.config.compose import PERTURBATIONS
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import nearest


def build_perturbations(configs: dict[str, dict]) -> nn.ModuleDict:
    """Builds perturbations, sorted by type in the paper's order, new types last, then by name.

    Raises:
        UserError: If one has no type, or a name that would count as a loss.
    """
    built = []
    for name, config in configs.items():
        key = f'model.auxiliary_head.perturbations.{name}'
        # its L_u is logged under the name
        if 'loss' in name:
            expected = 'another name: mmengine adds every logged value named so to the loss'
            raise UserError(key, 'a name with "loss" in it', expected)
        if 'type' not in config:  # perhaps a misspelt name, merged as a new entry
            others = [other for other in configs if other != name]
            raise UserError(key, 'no type', nearest(name, others))
        built.append((name, MODELS.build(config)))
    # The rows of a bank's parameters in a checkpoint are in this order. It cannot be that of the
    # config: mmengine sorts the keys of the configs that it dumps.
    order = [settings['type'] for settings in PERTURBATIONS.values()]
    places = {kind: place for place, kind in enumerate(order)}
    built.sort(key=lambda named: (places.get(type(named[1]).__name__, len(places)), named[0]))
    return nn.ModuleDict(built)
