"""Dumps configs atomically: after a full disk, no later start reads an empty one."""

from pathlib import Path
from typing import Any

from mmengine.config import Config

from mmseg_cct.utils.files import part_of

_dump = Config.dump


def dump_configs_whole() -> None:
    """Makes `Config.dump` write each file completely or not at all."""
    Config.dump = _dump_whole  # type: ignore[method-assign]


def _dump_whole(config: Config, file: str | Path | None = None) -> Any:
    if file is None:
        return _dump(config)
    with part_of(file, Path(file).suffix) as part:
        return _dump(config, str(part))
