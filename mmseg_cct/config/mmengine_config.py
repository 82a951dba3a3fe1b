"""Changes to mmengine's configs: where installed packages have theirs, and atomic dumps."""

from importlib import metadata
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE

from mmseg_cct.utils.files import part_of

from .shipped import SCOPE

_dump = Config.dump


def register_packages() -> None:
    """Lets `_base_ = 'mmseg_cct::…'` and `'mmseg::…'`, and `mmengine.hub`, find installed configs.

    mmengine's table has MMSegmentation's old name, so mmengine would install that distribution over
    the maintained one. A second call changes nothing.
    """
    MODULE2PACKAGE[SCOPE] = SCOPE
    try:
        metadata.version('onedl-mmsegmentation')
    except metadata.PackageNotFoundError:  # the original distribution, under the name in the table
        return
    MODULE2PACKAGE['mmseg'] = 'onedl-mmsegmentation'


def dump_configs_whole() -> None:
    """Makes `Config.dump` atomic: after a full disk, no later start reads an empty config."""
    Config.dump = _dump_whole  # type: ignore[method-assign]


def _dump_whole(config: Config, file: str | Path | None = None) -> Any:
    if file is None:
        return _dump(config)
    with part_of(file, Path(file).suffix) as part:
        return _dump(config, str(part))
