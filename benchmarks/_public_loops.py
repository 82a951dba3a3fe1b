"""One training of `public_training.py`, in its own process: ours, or a public loop in our setting.

A public loop keeps its data set, augmentation, losses, decoders, schedule and evaluation. It gets
the network of the setting (backbone, neck, main decoder), its crop, batch, optimizer and rates, and
what it needs to run on a CPU with today's libraries. All patches are made in memory.
"""

import json
import os
import random
import runpy
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar
from unittest.mock import MagicMock

import numpy as np
import torch
import yaml
from _measure import PROJECT, process_peak
from _public_code import TABS, mend
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner.loops import ValLoop
from mmseg.registry import MODELS
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook

from mmseg_cct.config.load import load_config

Arguments = ParamSpec('Arguments')
Result = TypeVar('Result')

# Old text and new text, by file of the clone. CCT: github.com/yassouali/CCT, 65d4e5b.
CCT_MENDS: dict[str, dict[str, str]] = {
    **TABS,
    'dataloaders/voc.py': {'self.num_classes = 21': 'self.num_classes = {num_classes}'},
    'models/model.py': {'num_out_ch = 2048': 'num_out_ch = 4 * {channels}'},
    # the backbone's rate; frozen weights are in no parameter group
    'base/base_trainer.py': {
        "['lr'] / 10": "['lr'] * {backbone}",
        'opt_params ==': 'opt_params <=',
    },
}
# UniMatch: github.com/LiheYoung/UniMatch, 0324f3d. SyncBatchNorm and device ids need a GPU.
_UNIMATCH_LOOP = {
    'import SGD': 'import AdamW as SGD',
    'momentum=0.9, weight_decay=1e-4': 'weight_decay={weight_decay}',
    'torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)': 'model',
    'device_ids=[local_rank]': 'device_ids=None',
    'output_device=local_rank': 'output_device=None',
    'num_workers=1': 'num_workers=0',
}
UNIMATCH_MENDS = {'unimatch.py': _UNIMATCH_LOOP, 'supervised.py': _UNIMATCH_LOOP}


class Notes:
    """Records the CPU time of each step and validation of this process in a JSON file.

    It is written after each validation and at the end; after `stop` steps the process ends.
    """

    def __init__(self, file: Path, stop: int | None) -> None:
        self.file = file
        self.stop = stop
        self.steps: list[float] = []
        self.validations: list[dict[str, float]] = []
        register_optimizer_step_post_hook(self._step)

    def _step(self, *_: Any) -> None:
        self.steps.append(time.process_time())
        if len(self.steps) == self.stop:
            self.write()
            os._exit(0)

    def validation(
        self, validate: Callable[Arguments, Result], miou: Callable[[Result], float]
    ) -> Callable[Arguments, Result]:
        """Wraps a loop's validation; `miou` reads the mIoU in % from its result."""

        def noted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            begin = time.process_time()
            result = validate(*args, **kwargs)
            found = dict(step=len(self.steps), begin=begin, end=time.process_time())
            self.validations.append(found | dict(miou=float(miou(result))))
            self.write()
            return result

        return noted

    def write(self) -> None:
        """Writes all figures so far."""
        figures = dict(
            steps=self.steps,
            validations=self.validations,
            cpu=time.process_time(),
            peak=process_peak(),
        )
        self.file.write_text(json.dumps(figures), encoding='utf-8')


# ---------------------------------------------------------------------------------- ours
def train_ours(options: Namespace, notes: Notes, method: str) -> None:
    """Runs tools/train.py in this folder, float32, without loader processes."""
    config = load_config(options.config, {})
    epoch = _steps_per_epoch(config, options)
    loader = 'num_workers=0', 'persistent_workers=False'
    Path('data').mkdir(exist_ok=True)
    _link(options.data, Path('data/idd_lite'))
    ValLoop.run = notes.validation(ValLoop.run, lambda metrics: metrics['mIoU'])
    sys.argv = [
        'train.py',
        options.config,
        *('--method', method, '--work-dir', 'run', '--cfg-options'),
        f'randomness.seed={options.seed}',
        f'model.backbone.init_cfg.checkpoint={options.weights}',
        f'train_cfg.max_iters={_epochs(config, options) * epoch}',
        f'train_cfg.val_interval={epoch}',
        *(f'{name}_dataloader.{key}' for name in ('train', 'val') for key in loader),
    ]
    runpy.run_path(str(PROJECT / 'tools/train.py'), run_name='__main__')


# ---------------------------------------------------------------------------------- CCT
def train_cct(options: Namespace, notes: Notes, method: str) -> None:
    """Runs the loop of CCT's public code: 'semi' or 'supervised', as its config calls them."""
    config, network = _network(options)
    optimizer = config.optim_wrapper.optimizer
    rates = _rates(config)
    values = dict(
        num_classes=network.decode_head.num_classes,
        channels=config.model.neck.mid_channels * 4,
        backbone=rates['backbone.'] / rates['head.'],
    )
    mend(options.cct, CCT_MENDS, **values)
    _run_on_cpu()

    class Encoder(nn.Module):
        def __init__(self, pretrained: bool) -> None:
            super().__init__()
            self.backbone, self.neck = network.backbone, network.neck

        def forward(self, images: Tensor) -> Tensor:
            return self.neck(self.backbone(images))[-1]

        def get_backbone_params(self) -> Any:
            return self.backbone.parameters()

        def get_module_params(self) -> Any:
            return self.neck.parameters()

    class MainDecoder(nn.Module):
        def __init__(self, upscale: int, channels: int, num_classes: int) -> None:
            super().__init__()
            self.head, self.upscale = network.decode_head, upscale

        def forward(self, z: Tensor) -> Tensor:
            return F.interpolate(self.head((z,)), scale_factor=self.upscale, mode='bilinear')

    _stand_in('utils.htmlwriter', HTML=MagicMock())  # its report needs the package `dominate`
    _stand_in('models.encoder', Encoder=Encoder)
    import_module('models.model').MainDecoder = MainDecoder
    trainer = import_module('trainer').Trainer
    trainer._valid_epoch = notes.validation(trainer._valid_epoch, lambda log: 100 * log['Mean_IoU'])
    settings = json.loads(Path(options.cct, 'configs/config.json').read_text(encoding='utf-8'))
    counts = {
        name: bank['num_decoders']
        for name, bank in load_config(options.config, {}).model.auxiliary_head.perturbations.items()
    }
    epochs = _epochs(config, options)
    settings |= dict(
        n_gpu=0,
        n_labeled_examples=len(_names(config, options, 'labeled')),
        ramp_up=1 / epochs,  # the first epoch; its own 0.1 would round to none
        optimizer=dict(
            type=optimizer.type, args=dict(lr=rates['head.'], weight_decay=optimizer.weight_decay)
        ),
    )
    semi = method == 'semi'
    settings['model'] |= dict(
        supervised=not semi,
        semi=semi,
        drop=counts.pop('dropout'),
        cutout=counts.pop('guided_cutout'),
        **counts,
    )
    for part in ('train_supervised', 'train_unsupervised', 'val_loader'):
        settings[part] |= dict(data_dir='.', num_workers=0)
    for part in ('train_supervised', 'train_unsupervised'):
        settings[part] |= dict(
            batch_size=config.train_dataloader.batch_size,
            crop_size=list(config.crop_size),
            base_size=max(config.image_size),  # scaled by 0.5 to 2
        )
    settings['trainer'] |= dict(
        epochs=epochs, save_dir='saved', log_dir='saved', val_per_epochs=1, save_period=1
    )
    lists = Path('dataloaders/voc_splits')
    lists.mkdir(parents=True, exist_ok=True)
    Path('VOCdevkit').mkdir(exist_ok=True)
    _link(options.data, Path('VOCdevkit/VOC2012'))
    number = settings['n_labeled_examples']
    repeat = options.repeat_labels or not semi
    for name, lines in _lists(config, options, repeat=repeat, prefix='/').items():
        title = name if name == 'val' else f'{number}_train_{name}'
        (lists / f'{title}.txt').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    import_module('train').main(settings, None)


# ---------------------------------------------------------------------------------- UniMatch
def train_unimatch(options: Namespace, notes: Notes, method: str) -> None:
    """Runs UniMatch's `unimatch.py` or `supervised.py`."""
    config, network = _network(options)
    rates = _rates(config)
    decay = config.optim_wrapper.optimizer.weight_decay
    mend(options.unimatch, UNIMATCH_MENDS, weight_decay=decay)
    _run_on_cpu()

    class Network(nn.Module):
        """UniMatch's interface to our network; `need_fp` drops half of z's channels."""

        def __init__(self, _: dict) -> None:
            super().__init__()
            self.backbone, self.neck = network.backbone, network.neck
            self.head = network.decode_head

        def forward(self, images: Tensor, need_fp: bool = False) -> Any:
            z = self.neck(self.backbone(images))[-1]
            if need_fp:
                z = torch.cat((z, F.dropout2d(z, 0.5)))
            out = F.interpolate(self.head((z,)), size=images.shape[-2:], mode='bilinear')
            return out.chunk(2) if need_fp else out

    def begin_alone(port: int | None) -> tuple[int, int]:
        torch.distributed.init_process_group(
            'gloo', store=torch.distributed.HashStore(), rank=0, world_size=1
        )
        return 0, 1

    os.environ['LOCAL_RANK'] = '0'
    _stand_in('util.dist_helper', setup_distributed=begin_alone)
    _stand_in('model.semseg.deeplabv3plus', DeepLabV3Plus=Network)
    _allow_rectangles(import_module('dataset.transform'), *config.crop_size)
    loop = import_module(method)
    loop.evaluate = notes.validation(loop.evaluate, lambda result: result[0])
    settings = yaml.safe_load(Path(options.unimatch, 'configs/pascal.yaml').read_text('utf-8'))
    settings |= dict(
        nclass=network.decode_head.num_classes,
        crop_size=max(config.crop_size),
        data_root=options.data,
        epochs=_epochs(config, options),
        batch_size=config.train_dataloader.batch_size,
        lr=rates['backbone.'],
        lr_multi=rates['head.'] / rates['backbone.'],
    )
    Path('settings.yaml').write_text(yaml.safe_dump(settings), encoding='utf-8')
    folder = Path('splits', settings['dataset'])
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in _lists(config, options, repeat=method != 'unimatch').items():
        (folder / f'{name}.txt').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    sys.argv = [
        f'{method}.py',
        *('--config', 'settings.yaml', '--save-path', 'saved'),
        *('--labeled-id-path', str(folder / 'supervised.txt')),
        *('--unlabeled-id-path', str(folder / 'unsupervised.txt')),
    ]
    loop.main()


def _allow_rectangles(transform: ModuleType, height: int, width: int) -> None:
    """Gives the square crops and CutMix boxes of UniMatch the setting's height and width."""
    square = transform.obtain_cutmix_box

    def crop(image: Any, mask: Any, _: int, ignore_value: int = 255) -> tuple[Any, Any]:
        right, below = max(width - image.width, 0), max(height - image.height, 0)
        expand = transform.ImageOps.expand
        image = expand(image, border=(0, 0, right, below), fill=0)
        mask = expand(mask, border=(0, 0, right, below), fill=ignore_value)
        x = random.randint(0, image.width - width)
        y = random.randint(0, image.height - height)
        box = x, y, x + width, y + height
        return image.crop(box), mask.crop(box)

    def obtain_cutmix_box(size: int, **options: Any) -> Tensor:
        rows = torch.arange(height) * size // height
        return square(size, **options)[rows]

    transform.crop = crop
    transform.obtain_cutmix_box = obtain_cutmix_box


# ---------------------------------------------------------------------------------- setting
def _network(options: Namespace) -> tuple[Config, Any]:
    """The setting, and its supervised network as our training starts with it."""
    config = load_config(
        options.config,
        {'method': 'supervised', 'model.backbone.init_cfg.checkpoint': options.weights},
    )
    import_module('mmseg_cct.plugin')
    init_default_scope('mmseg')
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(options.seed)
    network = MODELS.build(config.model)
    network.init_weights()
    frozen = tuple(name for name, rate in _rates(config).items() if rate == 0)
    for name, parameter in network.named_parameters():
        if name.startswith(frozen):
            parameter.requires_grad_(False)
    return config, network


def _rates(config: Config) -> dict[str, float]:
    """Learning rates by the start of a parameter's name."""
    optim_wrapper = config.optim_wrapper
    rate = optim_wrapper.optimizer.lr
    keys = optim_wrapper.paramwise_cfg.custom_keys
    return {'backbone.': rate} | {
        name: rate * options.get('lr_mult', 1.0) for name, options in keys.items()
    }


def _names(config: Config, options: Namespace, subset: str) -> list[str]:
    """Reads the image names of a list of the setting, or of val."""
    if subset == 'val':
        return sorted(path.stem for path in Path(options.data, 'images/val').iterdir())
    data = config.train_dataloader.dataset
    file = Path(data.split_dir, f'{data.num_labeled}_{subset}.txt')
    return file.read_text(encoding='utf-8').split()


def _lists(
    config: Config, options: Namespace, *, repeat: bool, prefix: str = ''
) -> dict[str, list[str]]:
    """Returns the lines 'image mask' of the three lists, with a prefix before each path.

    With `repeat`, the labelled list is repeated to the length of the unlabelled one, so that a
    supervised epoch is no shorter.
    """
    names = {subset: _names(config, options, subset) for subset in ('labeled', 'unlabeled', 'val')}
    if repeat:
        length = len(names['unlabeled'])
        names['labeled'] = (names['labeled'] * ceil(length / len(names['labeled'])))[:length]
    titles = dict(labeled='supervised', unlabeled='unsupervised', val='val')
    return {
        titles[subset]: [
            ' '.join(
                f'{prefix}{kind}/{"val" if subset == "val" else "train"}/{name}.{ending}'
                for kind, ending in (('images', 'jpg'), ('masks', 'png'))
            )
            for name in found
        ]
        for subset, found in names.items()
    }


def _steps_per_epoch(config: Config, options: Namespace) -> int:
    number = len(_names(config, options, 'unlabeled'))
    return ceil(number / config.train_dataloader.batch_size)


def _epochs(config: Config, options: Namespace) -> int:
    return max(round(options.iterations / _steps_per_epoch(config, options)), 1)


def _stand_in(name: str, **attributes: Any) -> None:
    """Replaces a module of a clone of which only some names are needed."""
    module = ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module


def _run_on_cpu() -> None:
    """Makes `.cuda()` do nothing."""
    nn.Module.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]


def _link(target: str, link: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(target)
