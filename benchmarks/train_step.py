#!/usr/bin/env python
"""Time and peak memory of a whole CCT training step against a supervised-only step.

Both steps see the same images: CCT takes N labelled and N unlabelled ones, the supervised step
takes all 2N as labelled. The step named baseline is that of a training's baseline: it takes only
the N labelled ones.
A step is `model.train_step`: normalisation, forward, backward, the optimizer's step of the config,
and the teacher's if it has one. Steps take turns in one process; times are medians. The network has
random weights; no data is read.
With --method, methods of configs/methods take their steps on the same network and images, in the
same turns. Each strong view adds as many images; a teacher predicts and is averaged.
With --variants, both steps are also taken with settings that change results only by rounding:
`merged` (parameter groups with equal options are one), `channels_last`, `compiled_encoder`
(torch.compile) and `bfloat16` (autocast, as --amp), several joined by +.
On a GPU, the table also counts kernels and copies.

Examples:
    python benchmarks/train_step.py
    python benchmarks/train_step.py --device cuda --images 10 --size 320 320 --dtype bfloat16
    python benchmarks/train_step.py --config configs/cct/cct_mbv2_camvid_50.py --size 168 224
    python benchmarks/train_step.py --method unimatch cct-plus fixmatch
    python benchmarks/train_step.py --variants merged merged+channels_last
"""

import argparse
import copy
from pathlib import Path

import torch
import torch.nn.functional as F
from _measure import PROJECT, Step, begin, benchmark_parser, measure, save, say_figures
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.device import use_half_precision
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import method_names
from mmseg_cct.engine.hooks.compile_encoder_hook import compile_encoder
from mmseg_cct.engine.hooks.teacher_hook import MultiTensorEMA

CONFIG = PROJECT / 'configs/cct/cct_r50_voc_1464.py'
VARIANTS = ('merged', 'channels_last', 'compiled_encoder', 'bfloat16')


def plugin_steps(options: argparse.Namespace) -> dict[str, Step]:
    """The plugin's steps: CCT, supervised, baseline, methods and variants."""
    config, supervised = _config(options), _config(options, 'supervised')
    images = list(torch.randint(0, 256, (2 * options.images, 3, *options.size), dtype=torch.uint8))
    coarse = torch.rand(len(images), config.model.decode_head.num_classes, 5, 5)  # regions
    labels = F.interpolate(coarse, tuple(options.size), mode='bilinear').argmax(1, keepdim=True)
    samples = [SegDataSample(metainfo=dict(ori_shape=tuple(options.size))) for _ in images]
    for sample, label in zip(samples, labels):
        sample.gt_sem_seg = PixelData(data=label)
    n = options.images
    plain = dict(inputs=images, data_samples=samples)
    labeled = {key: values[:n] for key, values in plain.items()}

    def pairs(views: int = 0) -> dict[str, dict[str, list]]:
        names = ['unlabeled', *(f'unlabeled_strong_{view}' for view in range(views))]
        return {
            key: dict(labeled=values[:n], **dict.fromkeys(names, values[n:]))
            for key, values in plain.items()
        }

    setups: dict[str, tuple[Config, dict]] = {
        'CCT': (config, pairs()),
        'supervised': (supervised, plain),
        'baseline': (supervised, labeled),
    }
    for name in options.method:
        method = _config(options, name)
        strong = method.train_dataloader.dataset.get('strong_views') or {}
        setups[name] = method, pairs(strong.get('num_views', 0))
    steps = {name: _plugin_step(*setup, options) for name, setup in setups.items()}
    for variant in options.variants:
        settings = frozenset(variant.split('+'))
        for name in setups:
            steps[f'{name}, {variant}'] = _plugin_step(*setups[name], options, settings)
    return steps


def _config(options: argparse.Namespace, method: str | None = None) -> Config:
    """Loads the config of a method, for random weights and images without class names."""
    config = load_config(options.config, dict(method=method) if method else {})
    model = config.model
    model.backbone.pop('init_cfg', None)
    if 'pretrained' in model.backbone:  # timm
        model.backbone.pretrained = False
    model.data_preprocessor.size = tuple(options.size)
    if model.get('auxiliary_head'):
        model.auxiliary_head.context_classes = (0,)
        if options.no_compile:
            model.auxiliary_head.compile = False
    return config


def _plugin_step(
    config: Config, batch: dict, options: argparse.Namespace, settings: frozenset[str] = frozenset()
) -> Step:
    """Builds a model and its optimizer, with some `VARIANTS`; returns their step on a batch."""
    torch.manual_seed(0)
    model = MODELS.build(copy.deepcopy(config.model)).to(options.device).train()
    optim_cfg = copy.deepcopy(config.optim_wrapper)
    if mixed := {'bfloat16', 'float16'} & {options.dtype, *settings}:
        optim_cfg.update(type='OptimWrapper', dtype=mixed.pop())
        # as `--amp` trains
        half = Config(dict(optim_wrapper=optim_cfg))
        use_half_precision(half)
        optim_cfg = half.optim_wrapper
    if 'merged' in settings:
        optim_cfg['constructor'] = 'MergedOptimWrapperConstructor'
    if 'channels_last' in settings:
        model.to(memory_format=torch.channels_last)
    if 'compiled_encoder' in settings:
        compile_encoder(model)
    logger = MMLogger.get_current_instance()
    logger.setLevel('WARNING')  # else three lines per parameter, if learning rates differ
    optim_wrapper = build_optim_wrapper(model, optim_cfg)
    logger.setLevel('INFO')
    hooks = config.get('default_hooks', {}).values()
    if not any(hook and hook['type'] == 'TeacherHook' for hook in hooks):
        return lambda: model.train_step(batch, optim_wrapper)
    average = MultiTensorEMA(model, momentum=0.01, gamma=1)
    model.set_teacher(average.module.eval())
    if 'compiled_encoder' in settings:
        compile_encoder(model.teacher, also_in_eval_mode=True)

    def step() -> None:
        model.train_step(batch, optim_wrapper)
        average.update_parameters(model)

    return step


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__)
    parser.add_argument('--config', default=str(CONFIG), help='a CCT config (default: %(default)s)')
    parser.add_argument(
        '--images', type=int, default=2, metavar='N', help='labelled images, and as many unlabelled'
    )
    parser.add_argument('--size', type=int, nargs=2, default=[160, 160], metavar=('H', 'W'))
    parser.add_argument(
        '--variants', nargs='+', default=[], metavar='NAME[+NAME...]',
        help=f'settings to measure as well: {", ".join(VARIANTS)}, or several joined by +',
    )  # fmt: skip
    parser.add_argument(
        '--method', nargs='+', default=[], choices=method_names(), help='methods to measure as well'
    )
    args = parser.parse_args()
    if unknown := {name for names in args.variants for name in names.split('+')} - set(VARIANTS):
        parser.error(f'--variants: no {", ".join(sorted(unknown))}')
    return args


def main() -> None:
    """Measures, prints the table, writes the figures."""
    options = parse_args()
    results = begin(options)
    results['steps'] = figures = measure(plugin_steps(options), options)
    n, (height, width) = options.images, options.size
    say_figures(
        f'A training step: {Path(options.config).stem}, {n}+{n} images of {height}×{width}, '
        f'{options.dtype}',
        figures,
        {
            'over supervised': lambda step: 'supervised' + ''.join(step.partition(', ')[1:]),
            'over the baseline': lambda _: 'baseline',
            'over the first of its kind': lambda step: step.partition(', ')[0],
        },
    )
    save(options, results)


if __name__ == '__main__':
    main()
