"""Fetches pretrained weights before anything is built."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmseg_cct.config.walk import settings_of
from mmseg_cct.engine.safe_loading import address_of, download
from mmseg_cct.errors import Problem, raise_problems


def fetch_pretrained_weights(model: dict[str, Any]) -> None:
    """Fetches every checkpoint that a model's `init_cfg` names into torch's cache.

    mmengine would download them late (after the data set is checked and the model built), without
    a timeout, and with an error that does not help on a machine without network. Local files are
    checked to exist.
    """
    named = [(*one, address_of(one[1], f'{one[0]}: ')) for one in _named_checkpoints(model)]
    raise_problems(
        Problem(key, f'{checkpoint} is not a file', 'a checkpoint file')
        for key, checkpoint, url in named
        if url is None and '://' not in checkpoint and not Path(checkpoint).expanduser().is_file()
    )
    # One download per machine; the other processes wait for it where mmengine loads the file.
    if os.environ.get('LOCAL_RANK', '0') != '0':
        return
    for key, checkpoint, url in named:
        if url is not None:
            download(url, f'{key}: {checkpoint}', f', or set {key}=FILE')


def _named_checkpoints(config: Any) -> Iterator[tuple[str, str]]:
    """Yields the dotted key and the value of each `Pretrained` checkpoint in a config."""
    for key, part in settings_of(config, 'model'):
        if not isinstance(part, Mapping):
            continue
        if part.get('type') == 'Pretrained' and isinstance(part.get('checkpoint'), str):
            yield f'{key}.checkpoint', part['checkpoint']
        # The older spelling, which MMSeg's segmentors and backbones still accept.
        if isinstance(part.get('pretrained'), str):
            yield f'{key}.pretrained', part['pretrained']
