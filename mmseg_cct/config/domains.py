"""The domains of a config: which one is meant, and what its settings are."""

import copy
from collections.abc import Mapping
from typing import Any

from mmengine.config import Config

from mmseg_cct.errors import UserError

from .compose import find_bank, merged
from .walk import get_by_key


def require_domain(config: Config, domain: str | None) -> None:
    """Checks that the model has this domain, or that it has no domains if this is None."""
    domains, name = get_by_key(config, 'model.domains'), config.filename or 'the config'
    if domains is None and domain is not None:
        raise UserError(f'--domain {domain}', f'{name} has no domains', 'none')
    if domains is not None and domain not in domains:
        expected = f'one of {", ".join(domains)}, as in model.domains of {name}'
        raise UserError(f'--domain {domain or "is missing"}', '', expected)


def pipeline_for_tests(config: Config) -> Any:
    """Finds the pipeline of single images, by default that of the test set; it is not copied."""
    key = 'test_dataloader.dataset.pipeline'
    pipeline = config.get('test_pipeline') or get_by_key(config, key)
    if not pipeline:
        raise UserError(config.filename or 'the config', f'no {key}', 'one')
    return pipeline


def config_of_domain(config: Config, domain: str) -> Config:
    """Makes the config of a network that has one domain of several, with its sets and pipelines.

    Its network has the weights of the domain, without its prefix. The evaluators, which are of all
    domains at once, are left out.
    """
    config = copy.deepcopy(config)
    model = config.model
    changes = model.pop('domains')[domain] or {}
    model.pop('discriminator', None)
    for key, value in domain_settings(model, changes, domain).items():  # `update` would merge
        model[key] = value
    # decoders on the features of an encoder, as a network of one data set has them
    model.type = 'EncoderDecoder' if find_bank(config) is None else 'CCTSegmentor'
    for split in ('train', 'val', 'test'):
        if datasets := get_by_key(config, f'{split}_dataloader.dataset.domains'):
            config[f'{split}_dataloader'].dataset = datasets.get(domain)
        config.pop(f'{split}_evaluator', None)
    config.test_pipeline = get_by_key(config, 'test_dataloader.dataset.pipeline')
    config.tta_pipeline = get_by_key(config, f'tta_pipeline.{domain}')
    return config


def domain_settings(
    common: Mapping[str, Any], changes: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Merges a domain's changes of decoders, preprocessing and tests over the common settings.

    The result has `data_preprocessor`, `decode_head`, `auxiliary_head` and `test_cfg`; other keys
    of `common` are left out.
    """
    shared = dict(
        data_preprocessor=common.get('data_preprocessor') or dict(type='BranchPreprocessor'),
        decode_head=common['decode_head'],
        auxiliary_head=common.get('auxiliary_head'),
        test_cfg=common.get('test_cfg') or {},
    )
    key = f'model.domains.{name}'
    if unknown := sorted(set(changes) - set(shared)):
        raise UserError(f'{key}.{unknown[0]}', 'not a setting of a domain', ', '.join(shared))
    return {k: merge_settings(value, changes.get(k), f'{key}.{k}') for k, value in shared.items()}


def merge_settings(common: Any, changes: Any, key: str) -> Any:
    """Merges a domain's changes into the settings that all domains share.

    `common` may be a list of settings; `changes` must then be one of the same length. None in
    `common` switches the component off, None in `changes` changes nothing.
    """
    if common is None:
        return None
    if not isinstance(common, (list, tuple)):
        return merged(common, changes or {})
    if changes is None:
        changes = [{}] * len(common)
    if not isinstance(changes, (list, tuple)) or len(changes) != len(common):
        raise UserError(key, '', f'a list of {len(common)}, one entry for each of the model')
    pairs = enumerate(zip(common, changes))
    return [merge_settings(part, changed, f'{key}.{i}') for i, (part, changed) in pairs]
