"""The authors' public code, from the user's own clone (github.com/yassouali/CCT, commit 65d4e5b).

It cannot be imported as it is: `utils/losses.py` mixes tabs and spaces, and its packages import
what training needs (tensorboard, the network) but decoders, losses and model do not. So its modules
are loaded one by one and patched in memory. No file of the clone is changed.
"""

import importlib
import sys
from dataclasses import dataclass
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from torch import Tensor, nn


@dataclass
class PublicCode:
    """The modules of the clone that are measured."""

    decoders: ModuleType  # models/decoders.py
    losses: ModuleType  # utils/losses.py
    model: ModuleType  # models/model.py

    def auxiliary_decoders(
        self, counts: dict[str, int], channels: int, num_classes: int, stride: int
    ) -> nn.ModuleList:
        """Builds decoders, by number of each perturbation, with the settings of the clone's config.

        Each is called with z and the main prediction.
        """
        kinds = dict(
            vat=(self.decoders.VATDecoder, dict(xi=1e-6, eps=2.0)),
            dropout=(self.decoders.DropOutDecoder, dict(drop_rate=0.5, spatial_dropout=True)),
            guided_cutout=(self.decoders.CutOutDecoder, dict(erase=0.4)),
            context_masking=(self.decoders.ContextMaskingDecoder, {}),
            object_masking=(self.decoders.ObjectMaskingDecoder, {}),
            feature_drop=(self.decoders.FeatureDropDecoder, {}),
            feature_noise=(self.decoders.FeatureNoiseDecoder, dict(uniform_range=0.3)),
        )
        return nn.ModuleList(
            kinds[name][0](stride, channels, num_classes, **kinds[name][1])
            for name, count in counts.items()
            for _ in range(count)
        )

    def consistency(self, predictions: list[Tensor], targets: Tensor) -> Tensor:
        """L_u as its training loop computes it from K × `(N, C, H, W)` logits and probabilities."""
        loss = self.losses.softmax_mse_loss
        return sum(loss(inputs=p, targets=targets) for p in predictions) / len(predictions)


def load_public_code(directory: str) -> PublicCode:
    """Imports the clone's modules under the names they have there.

    Raises:
        SystemExit: The folder is not such a clone.
    """
    root = Path(directory).resolve()
    if not (root / 'models/decoders.py').is_file():
        raise SystemExit(f'error: --reference {directory}: no clone of github.com/yassouali/CCT')
    packages = {name: _bare_package(name, root / name) for name in ('utils', 'base', 'models')}
    # the measured modules import names from it, but call none of them
    helpers = ModuleType('utils.helpers')
    helpers.initialize_weights = helpers.set_trainable = None  # type: ignore[attr-defined]
    sys.modules['utils.helpers'] = helpers
    _mend_tabs(root)
    losses = importlib.import_module('utils.losses')
    base_model = importlib.import_module('base.base_model')
    packages['base'].BaseModel = base_model.BaseModel  # type: ignore[attr-defined]
    decoders = importlib.import_module('models.decoders')
    return PublicCode(decoders, losses, importlib.import_module('models.model'))


def _bare_package(name: str, folder: Path) -> ModuleType:
    """Registers a package whose modules can be imported without running its `__init__.py`."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    return package


def _mend_tabs(root: Path) -> None:
    """Makes the modules of a clone importable, with spaces for the tabs of one of them."""

    class Mended(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            path = Path(self.get_filename(fullname))
            text = path.read_text(encoding='utf-8').replace('\t', ' ' * 8)
            return compile(text, str(path), 'exec', dont_inherit=True)

    def hook(folder: str) -> FileFinder:
        if not Path(folder).is_relative_to(root):
            raise ImportError(folder)
        return FileFinder(folder, (Mended, ['.py']))

    sys.path_hooks.insert(0, hook)
    sys.path.insert(0, str(root))
