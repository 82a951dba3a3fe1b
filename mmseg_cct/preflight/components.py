"""Checks the components of a config: their types exist and take the given arguments."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    EVALUATOR,
    HOOKS,
    LOG_PROCESSORS,
    LOOPS,
    METRICS,
    MODEL_WRAPPERS,
    MODELS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    TRANSFORMS,
    VISBACKENDS,
    VISUALIZERS,
    WEIGHT_INITIALIZERS,
    Registry,
)

from mmseg_cct.config.walk import at
from mmseg_cct.errors import Problem
from mmseg_cct.utils.suggest import close_names

_SPLITS = ('train', 'val', 'test')
_LOADER_PARTS = dict(dataset=DATASETS, sampler=DATA_SAMPLERS, batch_sampler=DATA_SAMPLERS)
# The registry of each component by the key that holds it, alone or in a list or dict.
_COMPONENTS: dict[str, Registry] = {
    'model': MODELS,
    'tta_model': MODELS,
    'model_wrapper_cfg': MODEL_WRAPPERS,
    **{
        f'{split}_dataloader.{key}': part
        for split in _SPLITS
        for key, part in _LOADER_PARTS.items()
    },
    **{f'{split}_evaluator': METRICS for split in _SPLITS},
    **{f'{split}_cfg': LOOPS for split in _SPLITS},
    'optim_wrapper': OPTIM_WRAPPERS,
    'optim_wrapper.optimizer': OPTIMIZERS,
    'param_scheduler': PARAM_SCHEDULERS,
    'default_hooks': HOOKS,
    'custom_hooks': HOOKS,
    'visualizer': VISUALIZERS,
    'log_processor': LOG_PROCESSORS,
    'tta_pipeline': TRANSFORMS,
    'test_pipeline': TRANSFORMS,
}
# The same for components within a component, by the name of the outer one's registry.
_INNER: dict[str, dict[str, Registry]] = {
    'dataset': {
        **dict.fromkeys(('dataset', 'datasets', 'labeled', 'unlabeled', 'domains'), DATASETS),
        'pipeline': TRANSFORMS,
    },
    'transform': {'transforms': TRANSFORMS},
    'model': {
        **dict.fromkeys(
            ('backbone', 'neck', 'decode_head', 'auxiliary_head', 'head', 'discriminator'), MODELS
        ),
        **dict.fromkeys(
            ('loss', 'loss_decode', 'loss_consistency', 'loss_weak', 'loss_pairwise'), MODELS
        ),
        **dict.fromkeys(('loss_strong', 'gate'), MODELS),
        **dict.fromkeys(('data_preprocessor', 'domains', 'module', 'perturbations'), MODELS),
        'init_cfg': WEIGHT_INITIALIZERS,
    },
    'visualizer': {'vis_backends': VISBACKENDS},
    'evaluator': {'metrics': METRICS},
}
# Keys that builders take out of a component's settings, or arguments that they add to them.
_BUILDER_ARGUMENTS: dict[str, set[str]] = {
    'data sampler': {'dataset', 'seed', 'sampler', 'batch_size'},
    'hook': {'priority'},
    'loop': {'runner', 'dataloader', 'evaluator', 'by_epoch'},
    'model_wrapper': {'module', 'device_ids', 'broadcast_buffers', 'find_unused_parameters'},
    'optim_wrapper': {'optimizer', 'constructor', 'paramwise_cfg'},
    'optimizer': {'params'},
    'parameter scheduler': {'optimizer', 'convert_to_iter_based', 'epoch_length'},
    'vis_backend': {'save_dir'},
    'visualizer': {'name', 'save_dir', 'vis_backends'},
    'weight initializer': {'override'},
}
# Registries whose components a config may also list by name, and keys that hold such lists.
_COLLECTIONS = {'dataset', 'hook', 'parameter scheduler', 'transform'}
_NAMED_PARTS = ('.domains', '.perturbations')
# Components whose parts another library builds: albumentations.
_OF_OTHERS = ('Albu', 'mmseg.Albu')
# Parts that are useless without a type.
_TYPED = ('model', *(f'{split}_dataloader.dataset' for split in _SPLITS), 'optim_wrapper.optimizer')
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Component(NamedTuple):
    """A part of a config that a registry builds."""

    key: str
    settings: Any
    registry: Registry


def component_problems(config: Mapping[str, Any], section: str | None = None) -> Iterator[Problem]:
    """Checks the types of all components, and the names of their arguments."""
    for key in _TYPED:
        part = at(config, key) if section in (None, key.split('.')[0]) else None
        if isinstance(part, Mapping) and 'type' not in part:
            yield Problem(key, 'no type', 'type=..., the name of a component')
    for component in find_components(config, section):
        yield from _problems_of(component)


def find_components(config: Mapping[str, Any], section: str | None = None) -> Iterator[Component]:
    """Finds the components that a run builds from its config."""
    for key, registry in _COMPONENTS.items():
        if section in (None, key.split('.')[0]):
            yield from _find_within(at(config, key), key, registry)


def _find_within(
    part: Any, key: str, registry: Registry, is_listed: bool = False
) -> Iterator[Component]:
    if isinstance(part, Sequence) and not isinstance(part, str):
        for index, value in enumerate(part):
            yield from _find_within(value, f'{key}.{index}', registry, True)
        return
    if isinstance(part, (str, int, float)):
        yield Component(key, part, registry)
    if not isinstance(part, Mapping):  # None, or an object
        return
    if registry is METRICS and 'metrics' in part:
        part, registry = {'type': 'Evaluator', **part}, EVALUATOR
    inner = _INNER.get(registry.name, {})
    may_be_named = registry.name in _COLLECTIONS or key.endswith(_NAMED_PARTS)
    is_single = is_listed and may_be_named and not any(map(_is_container, part.values()))
    if 'type' in part or is_single:
        yield Component(key, part, registry)
    elif may_be_named and not inner.keys() & part.keys():
        for name, value in part.items():
            yield from _find_within(value, f'{key}.{name}', registry, True)
        return
    for name, value in part.items():
        if name in inner and part.get('type') not in _OF_OTHERS:
            yield from _find_within(value, f'{key}.{name}', inner[name])


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _problems_of(component: Component) -> Iterator[Problem]:
    key, settings, registry = component
    if not isinstance(settings, Mapping):
        yield Problem(f'{key}={settings!r}', '', f'dict(type=...), a {registry.name}')
        return
    if 'type' not in settings:
        if key not in _TYPED:
            yield Problem(key, 'no type', f'type=..., the name of a {registry.name}')
        return
    built = class_of(component)
    if built is None:
        yield _unknown_type(component)
        return
    parameters = _parameters(built)
    by_builder = _BUILDER_ARGUMENTS.get(registry.name, set())
    given = settings.keys() - {'type', '_scope_'} - by_builder
    kinds = {parameter.kind for parameter in parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:  # only the constructor knows what these may be
        for name in sorted(given - parameters.keys()):
            yield Problem(key, f'unexpected keyword argument {name!r}', takes(built))
    if registry is MODELS:  # models complete the settings of their parts
        return
    for name, parameter in parameters.items():
        is_required = parameter.default is parameter.empty and parameter.kind in _NAMED
        if is_required and name not in given | by_builder:
            yield Problem(key, f'no {name}', takes(built))


def class_of(component: Component) -> Any:
    """Finds the class or function that a component's type names, or None."""
    settings, registry = component.settings, component.registry
    kind = settings.get('type') if isinstance(settings, Mapping) else None
    if callable(kind):
        return kind
    if not isinstance(kind, str) or not kind.strip('.'):
        return None
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        try:
            return scoped.get(kind)
        except Exception:  # a registry tries to import what looks like a path, even '../x'
            return None


def is_a(settings: Any, registry: Registry, *kinds: type) -> bool:
    """Whether the settings of a component name one of some classes, or a subclass."""
    built = class_of(Component('', settings, registry))
    return inspect.isclass(built) and issubclass(built, kinds)


def _unknown_type(component: Component) -> Problem:
    key, settings, registry = component
    kind = settings['type']
    if not isinstance(kind, str) or not kind.strip('.'):
        return Problem(f'{key}.type={kind!r}', '', f'the name of a {registry.name}')
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        near = close_names(kind, _registered_names(scoped))
        found = f"no '{kind}' in {scoped.scope}'s registry of {scoped.name}s"
    hint = f'did you mean {" or ".join(near)}?' if near else 'a registered component'
    return Problem(f'{key}.type', found, hint)


def _registered_names(registry: Registry) -> list[str]:
    outer = registry.parent
    return [*registry.module_dict, *(_registered_names(outer) if outer is not None else [])]


def _parameters(built: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(built).parameters
    except (TypeError, ValueError):  # written in C
        return {'kwargs': inspect.Parameter('kwargs', inspect.Parameter.VAR_KEYWORD)}


def takes(built: Any) -> str:
    """Lists the arguments of a component, for the `expected` of a problem."""
    return f'what {getattr(built, "__name__", built)} takes: {", ".join(_parameters(built))}'
