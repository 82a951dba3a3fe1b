"""Turns builder errors into one-line config errors.

`check_config` looks at a config before anything is built. What only a constructor can judge, such
as the depth of a ResNet, is found afterwards: the component that gives the same error when it is
built again, alone, is the one that refuses its arguments.
"""

import copy
import inspect
import itertools
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from mmengine.dataset import BaseDataset
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
    DefaultScope,
    Registry,
)
from mmengine.utils import ManagerMixin

from mmseg_cct.datasets.semi_supervised import explain_failed_build
from mmseg_cct.errors import UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line, original_error
from mmseg_cct.utils.suggest import close_names
from mmseg_cct.utils.text import one_line

from .values import check_values

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
    """A part of a config that a registry builds.

    Attributes:
        key: Dotted key in the config.
        settings: Its type and arguments, or what stands in their place.
        registry: mmengine's registry for it; the config's scope may have a child of that.
    """

    key: str
    settings: Any
    registry: Registry


def check_config(config: Mapping[str, Any]) -> None:
    """Checks the types and arguments of all components, before anything is built.

    Args:
        config: The whole config.

    Raises:
        UserError: A type is not registered, takes no such argument or needs another, or a value
            cannot be.
    """
    if config.get('model') is None:
        raise UserError('model: missing; expected the config of a model')
    check_components(config)


def check_components(config: Mapping[str, Any], section: str | None = None) -> None:
    """Does as `check_config`, for a config that may have no model.

    Args:
        config: The config.
        section: The only section whose components are looked at: what builds no more than a model
            may have a config without data.

    Raises:
        UserError: As of `check_config`.
    """
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        for key in _TYPED:
            if section not in (None, key.split('.')[0]):
                continue
            part = _part(config, key)
            if isinstance(part, Mapping) and 'type' not in part:
                raise UserError(f'{key}: no type; expected type=..., the name of a component')
        for component in find_components(config):
            if section in (None, component.key.split('.')[0]):
                _check_component(component)
        check_values(config)


@contextmanager
def config_errors_as_one_line(config: Any, fails: str = 'cannot be built') -> Iterator[None]:
    """Names the component, or at least the config, in place of a library's traceback.

    Args:
        config: The whole config.
        fails: What failed, for the message.

    Yields:
        Nothing; the body builds the config, or takes a first batch through it.

    Raises:
        Exception: What this package raised, which is a bug, or a `UserError` instead.
    """
    place = getattr(config, 'filename', None) or 'the config'
    with library_errors_as_one_line(place, fails, 'settings that fit together'):
        try:
            yield
        except Exception as error:
            raise_config_error(config, error)
            raise


def first_image_guards(config: Any) -> Iterator[AbstractContextManager]:
    """Guards the first image of a loop as `config_errors_as_one_line` does, and no other.

    A mistake of the config shows with the first image; what fails later is another matter.

    Args:
        config: The whole config.

    Yields:
        A context for each image.
    """
    yield config_errors_as_one_line(config, 'fails at the first image')
    yield from itertools.repeat(nullcontext())


def raise_config_error(config: Mapping[str, Any], error: Exception) -> None:
    """Raises a one-line error in place of one that building a component gave.

    Returns where no component gives the error when it is built alone: that is a bug, whose
    traceback matters.

    Args:
        config: The whole config.
        error: What building or running it raised.

    Raises:
        UserError: A component refuses its arguments, or a data set has no files.
    """
    if isinstance(error, UserError):
        return
    message = str(original_error(error))
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        # Inner components first: the outer ones give the error of an inner one too.
        for component in reversed(list(find_components(config))):
            if not _has_type(component.settings):
                continue
            again = build_alone(component)
            if type(again) is type(error) and str(again) == message:
                if component.registry is DATASETS:
                    explain_failed_build(dict(component.settings), component.key)
                raise UserError(_refusal(component, error)) from error


def find_components(config: Mapping[str, Any]) -> Iterator[Component]:
    """Finds what a run builds from its config by registries.

    Args:
        config: The whole config.

    Yields:
        The components, each before those within it.
    """
    for key, registry in _COMPONENTS.items():
        yield from _find_within(_part(config, key), key, registry)


def _part(config: Any, key: str) -> Any:
    for name in key.split('.'):
        config = config.get(name) if hasattr(config, 'get') else None
    return config


def _find_within(
    part: Any, key: str, registry: Registry, is_listed: bool = False
) -> Iterator[Component]:
    if isinstance(part, Sequence) and not isinstance(part, str):
        for index, value in enumerate(part):
            yield from _find_within(value, f'{key}.{index}', registry, True)
        return
    if isinstance(part, (str, int, float)):
        yield Component(key, part, registry)
    if not isinstance(part, Mapping):  # none, or an object
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


def _has_type(settings: Any) -> bool:
    return isinstance(settings, Mapping) and 'type' in settings


def _check_component(component: Component) -> None:
    key, settings, registry = component
    if not isinstance(settings, Mapping):
        raise UserError(f'{key}={settings!r}: expected dict(type=...), a {registry.name}')
    if 'type' not in settings:
        raise UserError(f'{key}: no type; expected type=..., the name of a {registry.name}')
    built = _resolve(component)
    parameters = _parameters(built)
    by_builder = _BUILDER_ARGUMENTS.get(registry.name, set())
    given = settings.keys() - {'type', '_scope_'} - by_builder
    unknown = sorted(given - parameters.keys())
    kinds = {parameter.kind for parameter in parameters.values()}
    # With **kwargs only the constructor knows what it takes.
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise UserError(
            f'{key}: unexpected keyword argument {unknown[0]!r}; {_signature(built, parameters)}'
        )
    if registry is MODELS:  # models complete the settings of their parts
        return
    for name, parameter in parameters.items():
        is_required = parameter.default is parameter.empty and parameter.kind in _NAMED
        if is_required and name not in given | by_builder:
            raise UserError(f'{key}: no {name}; {_signature(built, parameters)}')


def _resolve(component: Component) -> Any:
    """The class or function that a component's type names."""
    key, settings, registry = component
    kind = settings['type']
    if callable(kind):
        return kind
    if not isinstance(kind, str) or not kind.strip('.'):
        raise UserError(f'{key}.type={kind!r}: expected the name of a {registry.name}')
    with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
        try:
            built = scoped.get(kind)
        except Exception:  # a registry tries to import what looks like a path, '../x' too
            built = None
        if built is None:
            near = close_names(kind, _registered_names(scoped))
            hint = (
                f'did you mean {" or ".join(near)}?' if near else 'expected a registered component'
            )
            raise UserError(
                f"{key}.type: no '{kind}' in {scoped.scope}'s registry of {scoped.name}s; {hint}"
            )
    return built


def _registered_names(registry: Registry) -> list[str]:
    outer = registry.parent
    return [*registry.module_dict, *(_registered_names(outer) if outer is not None else [])]


def _parameters(built: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(built).parameters
    except (TypeError, ValueError):  # written in C
        return {'kwargs': inspect.Parameter('kwargs', inspect.Parameter.VAR_KEYWORD)}


def _signature(built: Any, parameters: Mapping[str, inspect.Parameter]) -> str:
    return f'{getattr(built, "__name__", built)} takes {", ".join(parameters)}'


def build_alone(component: Component) -> Exception | None:
    """Builds a component outside its run.

    Args:
        component: The component.

    Returns:
        The error that this gives, if any.
    """
    registry = component.registry
    try:
        built = _resolve(component)
        is_class = inspect.isclass(built)
        if is_class and issubclass(built, ManagerMixin):  # there is one for the whole process
            return None
        if registry is DATASETS and not (is_class and issubclass(built, BaseDataset)):
            return None  # a wrapper may talk to other processes
        by_builder = _BUILDER_ARGUMENTS.get(registry.name, set())
        arguments = {
            name: value for name, value in component.settings.items() if name not in by_builder
        }
        registry.build({**copy.deepcopy(arguments), **_stand_ins(registry)})
    except Exception as error:  # a stand-in may not do; the caller compares the errors
        return error
    return None


def _stand_ins(registry: Registry) -> dict[str, Any]:
    """Small objects in place of those that a runner passes on."""
    if registry is OPTIMIZERS:
        return dict(params=[torch.zeros(1, requires_grad=True)])
    if registry in (OPTIM_WRAPPERS, PARAM_SCHEDULERS):
        return dict(optimizer=torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0))
    if registry is LOOPS:
        return dict(runner=None, dataloader=())
    return {}


def _refusal(component: Component, error: Exception) -> str:
    built = _resolve(component)
    said = original_error(error)
    line = one_line(said.args[0] if said.args else said)
    if isinstance(error, TypeError) and 'argument' in line:
        return f'{component.key}: {line}; {_signature(built, _parameters(built))}'
    name = getattr(built, '__name__', built)
    if not line:  # as of an assert, whose condition says more than its type
        line = f'{type(said).__name__} at {traceback.extract_tb(said.__traceback__)[-1].line}'
    return f'{component.key}: {name} refuses its arguments: {line}'
