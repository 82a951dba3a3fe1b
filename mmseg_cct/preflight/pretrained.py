"""Pretrained weights that a model names: fetched before it is built, and compared with it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmengine.registry import DefaultScope

from mmseg_cct.config.walk import settings_of
from mmseg_cct.engine.safe_loading import address_of, download
from mmseg_cct.engine.weights import require_pretrained_weights
from mmseg_cct.errors import Problem, UserError, raise_problems


def fetch_pretrained_weights(model: Mapping[str, Any]) -> None:
    """Fetches every checkpoint that a model's `init_cfg` names into torch's cache.

    mmengine would download them late (after the data set is checked and the model built), without
    a timeout, and with an error that does not help on a machine without network. Local files are
    checked to exist.
    """
    named = [(key, file, address_of(file, f'{key}: ')) for key, file in _named_checkpoints(model)]
    local = [(key, file) for key, file, url in named if url is None and '://' not in file]
    missing = [(key, file) for key, file in local if not Path(file).expanduser().is_file()]
    raise_problems(Problem(key, f'{file} is not a file', 'a checkpoint') for key, file in missing)
    # One download per machine; the other processes wait for it where mmengine loads the file.
    if os.environ.get('LOCAL_RANK', '0') != '0':
        return
    for key, checkpoint, url in named:
        if url is not None:
            download(url, f'{key}: {checkpoint}', f', or set {key}=FILE')


def check_pretrained_weights(model: Mapping[str, Any], scope: str | None = 'mmseg') -> None:
    """Checks that the files that a model's `init_cfg` names fit the modules they are for."""
    problems: list[Problem | UserError] = []
    for key, part in settings_of(model, 'model'):
        if not isinstance(part, Mapping) or 'type' not in part:
            continue
        try:
            with DefaultScope.overwrite_default_scope(scope):
                require_pretrained_weights(part, key)
        except UserError as error:
            problems.append(error)
    raise_problems(problems)


def _named_checkpoints(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the dotted key and the value of each `Pretrained` checkpoint."""
    for key, part in settings_of(model, 'model'):
        if not isinstance(part, Mapping):
            continue
        if part.get('type') == 'Pretrained' and isinstance(part.get('checkpoint'), str):
            yield f'{key}.checkpoint', part['checkpoint']
        # The older spelling, which MMSeg's segmentors and backbones still accept.
        if isinstance(part.get('pretrained'), str):
            yield f'{key}.pretrained', part['pretrained']
