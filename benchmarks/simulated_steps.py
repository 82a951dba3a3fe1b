#!/usr/bin/env python
"""Training steps on a simulated GPU: waits of the host, memory and operations; no GPU is needed.

Runner, hooks, preprocessor, optimizer, loss scaler and teacher are those of a training; images are
noise. A step takes seconds. For each config and method it says what the host waits for in the last
step, the peak of the memory of all tensors (not of cuDNN's workspaces, nor of fragments), and how
many operations that step ran. A step that mixes tensors of two devices fails.

Examples:
    python benchmarks/simulated_steps.py --methods cct unimatch --amp float16
    python benchmarks/simulated_steps.py --configs all --methods own --size 64 64 --images 2
    python benchmarks/simulated_steps.py --cfg-options model.backbone.with_cp=True
"""

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from _simulated_gpu import SimulatedGPU, install

import torch  # isort: skip

install()

import mmengine.runner.runner  # noqa: E402
from _public_code import load_public_code  # noqa: E402
from mmengine.config import Config, DictAction  # noqa: E402
from mmengine.dataset import pseudo_collate  # noqa: E402
from mmengine.hooks import Hook  # noqa: E402
from mmengine.registry import init_default_scope  # noqa: E402
from mmengine.runner import Runner  # noqa: E402
from mmengine.structures import PixelData  # noqa: E402
from mmseg.registry import DATASETS, MODELS  # noqa: E402
from mmseg.structures import SegDataSample  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from torch.utils.data._utils.pin_memory import pin_memory  # noqa: E402

import mmseg_cct.plugin  # noqa: E402, F401 (registers the components)
from mmseg_cct.apis.device import enable_amp, fit_to_device  # noqa: E402
from mmseg_cct.config.compose import find_bank, training_sets  # noqa: E402
from mmseg_cct.config.load import load_config  # noqa: E402
from mmseg_cct.config.walk import settings_of  # noqa: E402

CONFIGS = Path(__file__).resolve().parents[1] / 'configs'
# one of them would look at the first images, which here are noise
LEFT_OUT = ('preflight', 'findings', 'visualization', 'progress_bar')


class Noise(Dataset):
    """Samples as the data sets of a config give them, of noise, for training or validation."""

    def __init__(self, config: Config, validates: bool = False) -> None:
        self.domains = list(config.model.get('domains') or [None])
        self.sets = dict(zip(self.domains, training_sets(config)))
        self.batch_size = 1 if validates else config.train_dataloader.batch_size
        self.validates = validates
        self.config = config
        names = {domain: self._classes(domain) for domain in self.domains}
        self.metainfo = dict(classes=names[self.domains[0]], palette=None)
        self.names = names

    def __len__(self) -> int:
        return 2 * self.batch_size if self.validates else 10**6

    def __getitem__(self, index: int) -> dict[str, Any]:
        domain = self.domains[index // self.batch_size % len(self.domains)]
        data = self.sets[domain]
        branches = ['labeled']
        if data.get('unlabeled') and not self.validates:
            views = (data.get('strong_views') or {}).get('num_views', 1)
            strong = [f'_strong_{i}' for i in range(views if data.get('strong_views') else 0)]
            branches += [f'unlabeled{view}' for view in ('', *strong)]
            if data.get('partners'):
                branches += [f'unlabeled_partner{view}' for view in ('', *strong)]
        parts = {branch: self._sample(domain, branch, index) for branch in branches}
        if len(parts) == 1:
            return parts['labeled']
        keys = ('inputs', 'data_samples')
        return {key: {branch: part[key] for branch, part in parts.items()} for key in keys}

    def _sample(self, domain: str | None, branch: str, index: int) -> dict[str, Any]:
        own = self.config.model.domains[domain] if domain else self.config.model
        settings = own.get('data_preprocessor') or self.config.model.data_preprocessor
        height, width = settings.size
        if branch != 'labeled' and index % 2:  # padded by the preprocessor
            height, width = height - 8, width - 8
        classes = self.names[domain]
        meta = dict(
            img_path=f'{index}.jpg', classes=classes, reduce_zero_label=False, flip=False,
            **dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape'), (height, width)),
        )  # fmt: skip
        sample = SegDataSample(metainfo={**meta, **(dict(domain=domain) if domain else {})})
        labels = PixelData(data=torch.randint(0, len(classes), (1, height, width)))
        setattr(sample, 'gt_sem_seg' if branch == 'labeled' else 'pseudo_sem_seg', labels)
        channels = len(self.config.model.data_preprocessor.mean)
        image = torch.randint(0, 256, (channels, height, width), dtype=torch.uint8)
        return dict(inputs=image, data_samples=sample)

    def _classes(self, domain: str | None) -> tuple[str, ...]:
        """Names that hold the context classes."""
        labeled = self.sets[domain].labeled
        own = labeled.get('classes') or (labeled.get('metainfo') or {}).get('classes')
        return tuple(own or DATASETS.get(labeled.type).METAINFO['classes'])


class Last(Hook):
    """Keeps what the last step did, and its parameters without a gradient."""

    priority = 'LOWEST'

    def __init__(self, gpu: SimulatedGPU) -> None:
        self.gpu = gpu
        self.row: dict[str, Any] = {}

    def before_train(self, runner: Runner) -> None:
        def look(*_: object) -> None:
            named = runner.model.named_parameters()
            self.row['idle'] = [n for n, p in named if p.requires_grad and p.grad is None]

        runner.optim_wrapper.optimizer.register_step_pre_hook(look)
        self.gpu.reset()

    def after_train_iter(self, *_: object, **__: object) -> None:
        self.row |= self.gpu.figures()
        self.gpu.reset()


def prepare(options: argparse.Namespace, name: str, method: str) -> Config:
    """Loads a config for noise: random weights, nothing compiled, nothing visualised."""
    chosen = dict(options.cfg_options or {})
    config = load_config(name, chosen if method == 'own' else {**chosen, 'method': method})
    for _, part in settings_of(config.model, 'model'):
        if isinstance(part, dict) and 'type' in part:
            part.pop('init_cfg', None)
            if 'pretrained' in part or 'timm' in str(part['type']).lower():
                part['pretrained'] = False
                part.pop('pretrained_cfg_overlay', None)
    if bank := find_bank(config):
        bank.compile = False
    if options.size:
        for part in (config.model, *(config.model.get('domains') or {}).values()):
            if part.get('data_preprocessor'):
                part.data_preprocessor.size = tuple(options.size)
    if options.images:
        config.train_dataloader.batch_size = options.images
    if options.amp:
        enable_amp(config)
        config.optim_wrapper.dtype = options.amp
    for key in LEFT_OUT:
        config.default_hooks.pop(key, None)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', interval=10**9, save_last=False)
    config.visualizer.vis_backends = []
    config.log_level = 'ERROR'
    config.experiment_name = f'{time.time_ns()}'
    return fit_to_device(config, 'none')


def train(options: argparse.Namespace, name: str, method: str) -> dict[str, Any]:
    """Trains some steps; returns what the last one did."""
    config = prepare(options, name, method)
    loader = DataLoader(
        Noise(config),
        config.train_dataloader.batch_size,
        collate_fn=lambda items: pin_memory(pseudo_collate(items)),
    )
    steps = options.steps
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=steps, val_interval=steps)
    validates = options.validate and not config.model.get('domains')
    config.val_dataloader = None
    if validates:
        config.val_dataloader = DataLoader(Noise(config, True), 1, collate_fn=pseudo_collate)
    else:
        config.val_cfg = config.val_evaluator = None
    for part in ('dataloader', 'cfg', 'evaluator'):
        config[f'test_{part}'] = None
    config.train_dataloader = loader
    with tempfile.TemporaryDirectory() as folder, SimulatedGPU() as gpu:
        config.work_dir = folder
        runner = Runner.from_cfg(config)
        runner._init_model_weights = lambda: None  # random as they are
        last = Last(gpu)
        runner.register_hook(last)
        runner.train()
    return last.row


def auxiliary_branches(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Runs the auxiliary decoders of the first config alone, and the authors' as many."""
    config = prepare(options, options.configs[0], 'own')
    bank = config.model.auxiliary_head
    counts = {name: part.num_decoders for name, part in bank.perturbations.items()}
    num_classes, n = bank.num_classes, config.train_dataloader.batch_size
    size = config.model.data_preprocessor.size
    sample = SegDataSample(metainfo=dict(classes=Noise(config).metainfo['classes']))
    public = load_public_code(options.reference)
    for name in ('the plugin', "the authors' code"):
        with SimulatedGPU() as gpu:
            z = torch.randn(n, 512, size[0] // 8, size[1] // 8).to('cuda').requires_grad_()
            logits = torch.randn(n, num_classes, *size).to('cuda')
            if name == 'the plugin':
                decoders = MODELS.build(bank).to('cuda')
                gpu.reset()
                decoders.loss((z,), logits, [sample] * n)['loss'].backward()
            else:
                decoders = public.auxiliary_decoders(counts, 512, num_classes, 8).to('cuda')
                gpu.reset()
                predictions = [decoder(z, logits) for decoder in decoders]
                public.consistency(predictions, logits.softmax(1)).backward()
            yield dict(config='auxiliary decoders', method=name, **gpu.figures())


def say(row: dict[str, Any]) -> None:
    """Prints a row and what the host waits for."""
    print(
        f'{row["config"]}, {row["method"]}: {row["memory"] / 2**30:.1f} GiB, '
        f'{row["operations"]} operations, {sum(row["waits"].values())} waits',
        flush=True,
    )
    for wait, number in row['waits'].items():
        print(f'    {number} × {wait}')


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--configs', nargs='+', default=['cct/cct_r50_voc_1464'])
    parser.add_argument('--methods', nargs='+', default=['own'], help="own: the config's own")
    parser.add_argument('--amp', choices=['float16', 'bfloat16'])
    parser.add_argument(
        '--size', nargs=2, type=int, metavar=('H', 'W'), help="default: the config's"
    )
    parser.add_argument('--images', type=int, help="of a branch (default: the config's)")
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--validate', action='store_true', help='two images after the steps')
    parser.add_argument(
        '--reference',
        metavar='DIR',
        help="clone of the authors' code: its auxiliary decoders beside the plugin's, alone",
    )
    parser.add_argument('--json', metavar='FILE', help='where to write what is printed, in full')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    return parser.parse_args()


def main() -> int:
    """Runs the steps; returns 1 if one failed."""
    options = parse_args()
    warnings.filterwarnings('ignore')
    mmengine.runner.runner.collect_env = dict
    rows = []
    shipped = [str(path) for path in sorted(CONFIGS.glob('[!_]*/cct_*.py'))]
    names = [shipped if name == 'all' else [name] for name in options.configs]
    for name in chain(*names):
        for method in options.methods:
            init_default_scope('mmseg')
            row: dict[str, Any] = dict(config=Path(name).stem, method=method)
            try:
                row |= train(options, name, method)
                say(row)
            except Exception as error:
                row['error'] = f'{type(error).__name__}: {error}'
                print(f'{row["config"]}, {method}: {row["error"]}', flush=True)
            rows.append(row)
    if options.reference:
        for row in auxiliary_branches(options):
            rows.append(row)
            say(row)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return int(any('error' in row for row in rows))


if __name__ == '__main__':
    sys.exit(main())
