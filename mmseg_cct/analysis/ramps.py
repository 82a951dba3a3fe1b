"""Ramps and learning rates of a config, evaluated without training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.registry import HOOKS, MODELS, PARAM_SCHEDULERS, init_default_scope

from mmseg_cct.config.derive import schedulers
from mmseg_cct.engine.hooks import RampUpHook
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import config_errors_as_one_line
from mmseg_cct.preflight.stages import check_components


@dataclass(frozen=True)
class Curve:
    """A scheduled value, one number per iteration.

    `panel` is the model's attribute, or 'learning rate'.
    """

    panel: str
    label: str
    values: list[float]


def planned_curves(config: Config) -> list[Curve]:
    """Evaluates every `RampUpHook` of a config, then the learning rate of each parameter group.

    A config without a number of iterations or a learning rate is a `UserError`.
    """
    check_components(config)
    init_default_scope(config.get('default_scope') or 'mmseg')
    max_iters = (config.get('train_cfg') or {}).get('max_iters')
    if not max_iters:
        raise UserError(
            f'{config.filename}: no train_cfg.max_iters; expected a config that trains '
            'by iterations'
        )
    with config_errors_as_one_line(config):
        return _ramps(config, max_iters) + _learning_rates(config, max_iters)


def plot_curves(curves: Sequence[Curve]) -> Figure:
    """Plots curves of one length, one panel per attribute."""
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    figure = Figure(figsize=(8, 2.2 * len(panels)), layout='constrained')
    grid = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(grid, panels):
        for curve in curves:
            if curve.panel == panel:
                axes.plot(curve.values, label=curve.label)
        axes.set_title(panel, fontsize=10)
        axes.margins(x=0.01)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    grid[-1].set_xlabel('iteration')
    return figure


def _ramps(config: Config, max_iters: int) -> list[Curve]:
    curves = []
    model: torch.nn.Module | None = None  # built only for a ramp that takes an end from it
    for settings in [
        *(config.get('default_hooks') or {}).values(),
        *(config.get('custom_hooks') or []),
    ]:
        kind = settings.get('type') if isinstance(settings, Mapping) else None
        kind = HOOKS.get(kind) if isinstance(kind, str) else kind
        if not (isinstance(kind, type) and issubclass(kind, RampUpHook)):
            continue
        hook = HOOKS.build(settings)
        if model is None and None in (hook.start, hook.end):
            model = MODELS.build(config.model)
        built = 0.0 if model is None else hook.find(model)[0][2]
        values = [hook.value_at(t, max_iters, built) for t in range(max_iters)]
        start, end = hook.ends(built)
        label = (
            f'{hook.schedule.__name__}, {start:g} to {end:g} in '
            f'{round(hook.fraction * max_iters)} iterations'
        )
        curves.append(Curve(hook.attribute, label, values))
    return curves


def _learning_rates(config: Config, max_iters: int) -> list[Curve]:
    """Steps the config's schedulers on an optimizer with one parameter for each rate."""
    wrapper = config.get('optim_wrapper') or {}
    rate = (wrapper.get('optimizer') or {}).get('lr')
    if rate is None:
        raise UserError(
            f'{config.filename}: no optim_wrapper.optimizer.lr; expected a learning rate'
        )
    labels = {1.0: 'all parameters'}
    rules = (wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    for name, settings in rules.items():
        factor = settings.get('lr_mult', 1.0)
        if factor != 1:
            labels[1.0] = 'other parameters'
            labels[factor] = f'{labels[factor]}, {name}' if factor in labels else name
    optimizer = torch.optim.SGD(
        [dict(params=[torch.nn.Parameter(torch.zeros(()))], lr=rate * m) for m in labels],
        lr=rate,
        momentum=0.9,
    )

    built = [
        PARAM_SCHEDULERS.build(
            {**settings, 'end': settings.get('end', max_iters)},
            default_args=dict(optimizer=optimizer),
        )
        for settings in schedulers(config)
        # A scheduler by epochs does nothing in a training by iterations.
        if not settings.get('by_epoch', True)
    ]
    values: list[list[float]] = [[] for _ in labels]
    for _ in range(max_iters):
        for group, history in zip(optimizer.param_groups, values):
            history.append(group['lr'])
        optimizer.step()
        for scheduler in built:
            scheduler.step()
    return [
        Curve('learning rate', label, history) for label, history in zip(labels.values(), values)
    ]
