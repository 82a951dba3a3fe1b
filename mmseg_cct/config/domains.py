"""The domains of a config: which one is meant."""

from typing import Any

from mmengine.config import Config

from mmseg_cct.errors import UserError


def require_domain(config: Config, domain: str | None) -> None:
    """Checks that a domain is named where the model has several, and that it has it.

    Args:
        config: The whole config.
        domain: Which domain; `None` where none is named.

    Raises:
        UserError: The model has no such domain, or none is named.
    """
    domains, name = config.model.get('domains'), _name(config)
    if domains is None and domain is not None:
        raise UserError(f'--domain {domain}: {name} has no domains; expected none')
    if domains is not None and domain not in domains:
        raise UserError(
            f'--domain {domain or "is missing"}: expected one of {", ".join(domains)}, as in '
            f'model.domains of {name}'
        )


def require_one_domain(config: Config, name: str) -> None:
    """Checks that a config has no domains, for a tool that looks at one data set.

    Args:
        config: The whole config.
        name: What to call it in the message.

    Raises:
        UserError: Its model has domains.
    """
    if domains := (config.get('model') or {}).get('domains'):
        raise UserError(f'{name}: several domains ({", ".join(domains)}); expected a config of one')


def pipeline_for_tests(config: Config, domain: str | None = None) -> Any:
    """Finds the pipeline of the test set, or of that of a domain.

    Args:
        config: The whole config.
        domain: Which domain, if the model has several.

    Returns:
        The pipeline, as it is in the config.

    Raises:
        UserError: As in `require_domain`, or there is none.
    """
    require_domain(config, domain)
    key = 'test_dataloader.dataset' + (f'.domains.{domain}' if domain else '')
    part: Any = config
    for name in (*key.split('.'), 'pipeline'):
        part = part.get(name) if hasattr(part, 'get') else None
    if part is None:
        raise UserError(f'{_name(config)}: no {key}.pipeline; expected one')
    return part


def _name(config: Config) -> str:
    return config.filename or 'the config'
