"""Fetches pretrained weights before anything is built."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

import torch
from mmengine.runner.checkpoint import (
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    get_torchvision_models,
)

from mmseg_cct.errors import UserError

CONNECT_TIMEOUT = 20  # seconds; torch's own download waits for ever


def fetch_pretrained_weights(model: dict[str, Any]) -> None:
    """Fetches every checkpoint that a model's `init_cfg` names into torch's cache.

    mmengine would download them late (after the data set is checked and the model built), without
    a timeout, and with an error that does not help on a machine without network. Local files are
    checked to exist.

    Args:
        model: The config of the model.

    Raises:
        UserError: A file is missing, a name is not in the model zoo or a download failed.
    """
    for key, checkpoint in _named_checkpoints(model, 'model'):
        url = _url_of(checkpoint, key)
        if url is not None:
            _fetch(url, checkpoint, key)
        elif '://' not in checkpoint and not Path(checkpoint).expanduser().is_file():
            raise UserError(
                f'{key}: {checkpoint} is not a file; expected a checkpoint, given for example by '
                f'--cfg-options {key}=FILE'
            )


def cached_file(url: str) -> Path:
    """Where torch and mmengine look for a downloaded file.

    Args:
        url: Address of the file.

    Returns:
        The file's place in torch's cache.
    """
    return Path(torch.hub.get_dir()) / 'checkpoints' / Path(urlparse(url).path).name


def _named_checkpoints(config: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yields the dotted key and the value of each `Pretrained` checkpoint in a config."""
    if isinstance(config, dict):
        if config.get('type') == 'Pretrained' and isinstance(config.get('checkpoint'), str):
            yield f'{key}.checkpoint', config['checkpoint']
        # The older spelling, which MMSeg's segmentors and backbones still accept.
        if isinstance(config.get('pretrained'), str):
            yield f'{key}.pretrained', config['pretrained']
        items: Any = config.items()
    else:
        items = enumerate(config) if isinstance(config, (list, tuple)) else ()
    for name, value in items:
        yield from _named_checkpoints(value, f'{key}.{name}')


def _url_of(checkpoint: str, key: str) -> str | None:
    """The address behind mmengine's short names; None for local files and other storage."""
    scheme, separator, name = checkpoint.partition('://')
    if not separator:
        return None
    if scheme in ('http', 'https'):
        return checkpoint
    if scheme in ('open-mmlab', 'openmmlab'):
        urls = get_external_models()
        name = get_deprecated_model_names().get(name, name)
    elif scheme == 'mmcls':
        urls = get_mmcls_models()
    elif scheme in ('torchvision', 'modelzoo'):
        urls = get_torchvision_models()
    else:
        return None
    if name not in urls:
        raise UserError(
            f'{key}: {checkpoint} is not in the model zoo of the installed mmengine; '
            'expected a name that is, an https address or a local file'
        )
    return urls[name]


def _fetch(url: str, checkpoint: str, key: str) -> None:
    target = cached_file(url)
    # One download per machine; the other processes wait for it where mmengine loads the file.
    if target.exists() or os.environ.get('LOCAL_RANK', '0') != '0':
        return
    try:
        urlopen(url, timeout=CONNECT_TIMEOUT).close()
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(target))
    except OSError as error:
        raise UserError(
            f'{key}: {checkpoint} could not be downloaded ({error}); fetch {url} elsewhere and put '
            f'it at {target}, or name any local file by --cfg-options {key}=FILE'
        ) from error
