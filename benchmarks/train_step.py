#!/usr/bin/env python
"""Time and peak memory of a whole CCT training step against a supervised-only step.

Both steps see the same images: CCT takes N labelled and N unlabelled ones, the supervised step all
2N as labelled; the step named baseline is that of a training's baseline, the N labelled ones alone.
A step is `model.train_step`: normalisation, forward, backward and the optimizer's step of the
config, and its teacher's if it has one, in one process, by turns, medians. The network has random
weights; no data is read.
With --method the recipes of configs/_base_/methods make their steps on the same network and images,
in the same turns: their strong views are as many images more, a teacher predicts and is averaged.
With --variants both steps are also taken with settings that change no result but in rounding:
`merged` (parameter groups with equal options are one), `fused` and `foreach` (options of the
optimizer), `channels_last` and `compiled_encoder` (torch.compile), several with +.
On a GPU the table also counts kernels, copies, and how often the host waits for the device.
With --reference DIR the authors' public model (your own clone) makes the same two steps in the same
turns.

Examples:
    python benchmarks/train_step.py
    python benchmarks/train_step.py --reference ../CCT --json step.json
    python benchmarks/train_step.py --device cuda --images 10 --size 320 320 --dtype bfloat16
    python benchmarks/train_step.py --config configs/cct/cct_mbv2_camvid_50.py --size 168 224
    python benchmarks/train_step.py --method unimatch cct-plus fixmatch
    python benchmarks/train_step.py --variants merged merged+fused channels_last
"""

import argparse
import copy
import json
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from _measure import (
    Step,
    alternate,
    autocast,
    count_kernels,
    machine,
    mebibytes,
    paired_ratio,
    quartiles,
    ratio,
    say,
    seconds,
    set_precision,
    step_peak,
)
from _public_code import load_public_code
from _quiet import add_busy_option, require_quiet
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.engine.averaged_model import MultiTensorEMA
from mmseg_cct.utils.markdown import markdown_table

PROJECT = Path(__file__).resolve().parents[1]
CONFIG = PROJECT / 'configs/cct/cct_r50_voc_1464.py'
METHODS = PROJECT / 'configs/_base_/methods'
VARIANTS = (
    'merged',
    'fused',
    'foreach',
    'channels_last',
    'compiled_encoder',
)


def labels(options: argparse.Namespace, num_classes: int) -> Tensor:
    """Drawn regions for all 2N images.

    Args:
        options: The command line.
        num_classes: C.

    Returns:
        `(2N, H, W)` int64.
    """
    coarse = torch.rand(2 * options.images, num_classes, 5, 5)
    return F.interpolate(coarse, tuple(options.size), mode='bilinear').argmax(1)


def plugin_steps(options: argparse.Namespace) -> dict[str, Step]:
    """The plugin's CCT step, supervised step and that of the baseline.

    Args:
        options: The command line.

    Returns:
        Steps by name.
    """
    config = Config.fromfile(options.config)
    model = config.model
    model.backbone.pop('init_cfg', None)
    if 'pretrained' in model.backbone:  # timm
        model.backbone.pretrained = False
    model.data_preprocessor.size = tuple(options.size)
    model.auxiliary_head.context_classes = (0,)  # the drawn images carry no class names
    if options.no_compile:
        model.auxiliary_head.compile = False
    baseline = copy.deepcopy(model)
    baseline.update(type='EncoderDecoder', auxiliary_head=None)

    images = list(torch.randint(0, 256, (2 * options.images, 3, *options.size), dtype=torch.uint8))
    samples = []
    for label in labels(options, model.decode_head.num_classes):
        sample = SegDataSample(metainfo=dict(ori_shape=tuple(options.size)))
        sample.gt_sem_seg = PixelData(data=label.unsqueeze(0))
        samples.append(sample)
    n = options.images
    pairs = dict(
        inputs=dict(labeled=images[:n], unlabeled=images[n:]),
        data_samples=dict(labeled=samples[:n], unlabeled=samples[n:]),
    )
    recipes = {
        name: _recipe_step(name, model, config.optim_wrapper, pairs, options)
        for name in options.method
    }
    plain = dict(inputs=images, data_samples=samples)
    labeled = dict(inputs=images[:n], data_samples=samples[:n])
    taught = _has_teacher(config.get('custom_hooks', []))
    steps = {
        'CCT': _plugin_step(model, config.optim_wrapper, pairs, options, taught),
        'supervised': _plugin_step(baseline, config.optim_wrapper, plain, options),
        'baseline': _plugin_step(baseline, config.optim_wrapper, labeled, options),
        **recipes,
    }
    for name in options.variants:
        settings = frozenset(name.split('+'))
        steps |= {
            f'CCT, {name}': _plugin_step(
                model, config.optim_wrapper, pairs, options, taught, settings
            ),
            f'supervised, {name}': _plugin_step(
                baseline, config.optim_wrapper, plain, options, settings=settings
            ),
        }
    return steps


def _recipe_step(
    name: str, model_cfg: dict, optim_cfg: dict, pairs: dict, options: argparse.Namespace
) -> Step:
    """The step of a recipe on the network of a CCT config.

    Args:
        name: File name of the recipe, without its end.
        model_cfg: The CCT model.
        optim_cfg: The optimizer wrapper.
        pairs: A batch of labelled and unlabelled images.
        options: The command line.

    Returns:
        The step.
    """
    recipe = Config.fromfile(METHODS / f'{name}.py')
    merged = Config(dict(model=copy.deepcopy(model_cfg)))
    merged.merge_from_dict(dict(model=recipe.method))
    batch = {key: dict(branches) for key, branches in pairs.items()}
    for view in range(recipe.strong_views.num_views):
        for branches in batch.values():
            branches[f'unlabeled_strong_{view}'] = branches['unlabeled']
    return _plugin_step(merged.model, optim_cfg, batch, options, _has_teacher(recipe.method_hooks))


def _has_teacher(hooks: list[dict]) -> bool:
    return any(hook['type'] == 'TeacherHook' for hook in hooks)


def _plugin_step(
    model_cfg: dict,
    optim_cfg: dict,
    batch: dict,
    options: argparse.Namespace,
    taught: bool = False,
    settings: frozenset[str] = frozenset(),
) -> Step:
    """A step of the plugin.

    Args:
        model_cfg: The model.
        optim_cfg: The optimizer wrapper.
        batch: As a data loader gives it.
        options: The command line.
        taught: Whether the model takes a teacher.
        settings: Of `VARIANTS`.

    Returns:
        The step.
    """
    torch.manual_seed(0)
    model = MODELS.build(copy.deepcopy(model_cfg)).to(options.device).train()
    optim_cfg = copy.deepcopy(optim_cfg)
    if options.dtype == 'bfloat16' and options.device == 'cpu':
        optim_cfg['type'] = 'CPUAmpOptimWrapper'
    elif options.dtype == 'bfloat16':
        optim_cfg.update(type='AmpOptimWrapper', dtype='bfloat16')
    if 'merged' in settings:
        optim_cfg['constructor'] = 'MergedOptimWrapperConstructor'
    for key in settings & {'fused', 'foreach'}:
        optim_cfg['optimizer'][key] = True
    if 'channels_last' in settings:
        model.to(memory_format=torch.channels_last)
    if 'compiled_encoder' in settings:
        model.backbone.compile()
        if model.with_neck:
            model.neck.compile()
    logger = MMLogger.get_current_instance()
    logger.setLevel('WARNING')  # else three lines per parameter, where learning rates differ
    optim_wrapper = build_optim_wrapper(model, optim_cfg)
    logger.setLevel('INFO')
    if not taught:
        return lambda: model.train_step(batch, optim_wrapper)
    average = MultiTensorEMA(model, momentum=0.01, gamma=1)
    model.set_teacher(average.module.eval())

    def step() -> None:
        model.train_step(batch, optim_wrapper)
        average.update_parameters(model)

    return step


def count_waits(step: Step) -> int:
    """Counts how often the host waits for the GPU in a step.

    Args:
        step: What to run; warmed up.

    Returns:
        Number of operations that CUDA reports as synchronizing.
    """
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        torch.cuda.set_sync_debug_mode('warn')
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode('default')
    return sum('synchronizing' in str(warning.message) for warning in caught)


def public_steps(options: argparse.Namespace) -> dict[str, Step]:
    """The public code's two steps, in the setting of its own config.

    Args:
        options: The command line.

    Returns:
        Steps by name.
    """
    public = load_public_code(options.reference)
    setting = Path(options.reference, 'configs/config.json').read_text(encoding='utf-8')
    conf = json.loads(setting)['model']
    num_classes = Config.fromfile(options.config).model.decode_head.num_classes
    n, device = options.images, options.device
    images = torch.randn(2 * n, 3, *options.size, device=device)
    masks = labels(options, num_classes).to(device)
    batches = dict(
        CCT=dict(x_l=images[:n], target_l=masks[:n], x_ul=images[n:]),
        supervised=dict(x_l=images, target_l=masks),
    )

    def make(name: str) -> Step:
        weight = public.losses.consistency_weight(final_w=30, iters_per_epoch=1, rampup_ends=0)
        model = (
            public.model.CCT(
                num_classes,
                dict(conf, semi=name == 'CCT', supervised=name == 'supervised'),
                sup_loss=public.losses.CE_loss,
                cons_w_unsup=weight,
                ignore_index=255,
                pretrained=None,
            )
            .to(device)
            .train()
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4)

        def step() -> None:
            with autocast(device, options.dtype):
                loss, _, _ = model(**batches[name], curr_iter=0, epoch=1)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()  # at the end, as mmengine does: gradients count in both memories

        return step

    return {f'public {name}': make(name) for name in batches}


def parse_args() -> argparse.Namespace:
    """Reads the command line.

    Returns:
        The options.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--config', default=str(CONFIG), help='a CCT config (default: %(default)s)')
    parser.add_argument('--device', choices=['cpu', 'cuda'], default='cpu')
    parser.add_argument(
        '--dtype',
        choices=['float32', 'tf32', 'bfloat16'],
        default='float32',
        help='bfloat16: mixed precision; tf32: on a GPU',
    )
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--repeats', type=int, default=7, help='readings per median')
    parser.add_argument(
        '--images', type=int, default=2, metavar='N', help='labelled images, and as many unlabelled'
    )
    parser.add_argument('--size', type=int, nargs=2, default=[160, 160], metavar=('H', 'W'))
    parser.add_argument('--no-compile', action='store_true', help='run the bank uncompiled')
    parser.add_argument('--reference', metavar='DIR', help="your clone of the authors' public code")
    parser.add_argument(
        '--variants',
        nargs='+',
        type=_variant,
        default=[],
        metavar='NAME[+NAME...]',
        help=f'settings to measure too: {", ".join(VARIANTS)}, and several of them with +',
    )
    parser.add_argument(
        '--method',
        nargs='+',
        default=[],
        choices=sorted(path.stem for path in METHODS.glob('*.py')),
        help='recipes to measure too',
    )
    parser.add_argument('--json', metavar='FILE', help='where to write all figures')
    add_busy_option(parser)
    return parser.parse_args()


def _variant(text: str) -> str:
    if unknown := set(text.split('+')) - set(VARIANTS):
        raise argparse.ArgumentTypeError(
            f'{text}: no {", ".join(sorted(unknown))}; expected {", ".join(VARIANTS)}, joined by +'
        )
    return text


def main() -> None:
    """Measures, prints the table, writes the figures."""
    options = parse_args()
    torch.set_num_threads(options.threads)
    set_precision(options.dtype)
    init_default_scope('mmseg')
    torch.manual_seed(0)
    require_quiet(options.threads, options.allow_busy)
    about = machine(options.device)
    say(markdown_table(['machine', ''], [[key, value] for key, value in about.items()]))

    steps = plugin_steps(options)
    if options.reference:
        steps.update(public_steps(options))
    say('\nmeasuring: ' + ', '.join(steps))
    times = alternate(steps, options.repeats, options.device)
    figures: dict[str, Any] = {
        name: dict(time=times[name], memory=step_peak(step, options.device))
        for name, step in steps.items()
    }
    columns = [
        'a step',
        'time',
        'range',
        'over supervised',
        'CPU time over supervised',
        'over the baseline',
        *['over the first of its kind'] * bool(options.variants),
        'memory',
        'over supervised',
        'first call',
    ]
    rows = []
    for name, row in figures.items():
        kind, _, variant = name.partition(', ')
        baseline = f'supervised, {variant}' if variant else 'supervised'
        if name.startswith('public'):
            baseline = 'public supervised'
        time, against = row['time'], figures[baseline]
        rows.append(
            [
                name,
                seconds(time['median']),
                f'{seconds(time["min"])}–{seconds(time["max"])}',
                paired_ratio(time, against['time']),
                paired_ratio(time, against['time'], 'cpu_times'),
                '' if name.startswith('public') else paired_ratio(time, times['baseline']),
                *[paired_ratio(time, figures[kind]['time'])] * bool(options.variants),
                mebibytes(row['memory']),
                ratio(row['memory'], against['memory']),
                seconds(time['first']),
            ]
        )
        if options.device == 'cuda':
            row['kernels'], row['copies'] = count_kernels(steps[name])
            row['waits'] = count_waits(steps[name])
            rows[-1] += [str(row[key]) for key in ('kernels', 'copies', 'waits')]
    if options.device == 'cuda':
        columns += ['kernels', 'copies', 'waits of the host']
    n, (height, width) = options.images, options.size
    say(
        f'\n### A training step: {Path(options.config).stem}, {n}+{n} images of {height}×{width}, '
        f'{options.dtype}\n\n{markdown_table(columns, rows)}'
    )

    results: dict[str, Any] = dict(
        machine=about, dtype=options.dtype, device=options.device, steps=figures
    )
    for prefix in ('', 'public ') if options.reference else ('',):
        cct, supervised = (figures[prefix + kind]['time'] for kind in ('CCT', 'supervised'))
        key = prefix.replace(' ', '_') + 'step_ratio'
        results[key] = quartiles(cct, supervised)[1]
        results[f'{key}_quartiles'] = quartiles(cct, supervised)
        results[f'{key}_cpu_time'] = quartiles(cct, supervised, 'cpu_times')[1]
    results['step_over_baseline'] = quartiles(times['CCT'], times['baseline'])[1]
    if 'unimatch' in options.method:
        for name in sorted(set(options.method) - {'unimatch'}):
            mine, theirs = figures[name]['time'], figures['unimatch']['time']
            results[f'{name}_over_unimatch'] = quartiles(mine, theirs)[1]
            results[f'{name}_over_unimatch_cpu_time'] = quartiles(mine, theirs, 'cpu_times')[1]
            say(
                f'\n{name} over unimatch: {paired_ratio(mine, theirs)}, CPU time '
                f'{paired_ratio(mine, theirs, "cpu_times")}'
            )
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1), encoding='utf-8')


if __name__ == '__main__':
    main()
