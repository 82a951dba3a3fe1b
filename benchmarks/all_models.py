#!/usr/bin/env python
"""Trains one model of each of MMSegmentation's folders of configs with CCT.

Of each it writes a config with `add_cct`, loads MMSegmentation's own weights by name, trains three
steps on noise of 64×64 pixels, and predicts by the trained weights in MMSegmentation's own model.
"""

import argparse
import contextlib
import copy
import io
import logging
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mmseg
import numpy as np
import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmseg.registry import DATASETS, MODELS
from mmseg.structures import SegDataSample
from PIL import Image

from mmseg_cct.apis.publish import inference_config
from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import as_list, forget_initial_weights, leaf_sets
from mmseg_cct.engine.weights import is_training_only
from mmseg_cct.errors import UserError
from mmseg_cct.writer.add_cct import add_cct

CONFIGS = Path(mmseg.__file__).parent / '.mim' / 'configs'
# The smallest backbone comes first: the first config of a folder whose name has the first of these
# that any name in the folder has.
SMALLEST = (
    *('r18', 'hr18s', 'mit-b0', 'mscan-t', 'vit-s', 'swin-tiny', 'swin-t', 'convnext-tiny', 's12'),
    *('svt-s', 'deit-s16', 'slim', '-s_', 'r50', 'base', 'mobilenet-v3-d8-scratch-s', 'b16', ''),
)
SIDE, STEPS, BATCH = 64, 3, 2
# Least sides of models that do not run on fewer pixels.
SIDES = {'mobilenet_v3': 448, 'pidnet': 128, 'resnest': 128}


def folders() -> list[str]:
    """Lists MMSegmentation's folders of models."""
    known = sorted(path.name for path in CONFIGS.iterdir() if any(path.glob('*.py')))
    return [name for name in known if name not in ('_base_', 'dsdl')]


def smallest_config(folder: str) -> str:
    """Names the config of the folder that is trained."""
    names = sorted(path.stem for path in (CONFIGS / folder).glob('*.py'))
    return next(name for mark in SMALLEST for name in names if mark in name)


def noise(root: Path, side: int, num_classes: int) -> None:
    """Writes images and masks of noise, the masks with blocks of classes and of ignored pixels."""
    rng = np.random.default_rng(0)
    for part in ('images', 'masks'):
        (root / part).mkdir(parents=True, exist_ok=True)
    for index in range(4):
        pixels = rng.integers(0, 256, (side, side, 3), np.uint8)
        labels = rng.integers(0, num_classes + 1, (8, 8))
        labels[labels == num_classes] = 255
        mask = np.kron(labels, np.ones((side // 8, side // 8))).astype(np.uint8)
        Image.fromarray(pixels).save(root / 'images' / f'{index}.png')
        Image.fromarray(mask).save(root / 'masks' / f'{index}.png')


def shrink(config: Config, side: int, root: Path, work_dir: Path) -> None:
    """Makes a training of three steps on noise; the model stays but for the size of its images."""
    forget_initial_weights(config.model)
    config.model.data_preprocessor.size = (side, side)
    config.model.data_preprocessor.pop('size_divisor', None)
    backbone = config.model.backbone
    if 'img_size' in backbone:
        backbone.img_size = (side, side)
    config.model.test_cfg = dict(config.model.test_cfg, mode='whole')
    for _, dataset in leaf_sets(config.train_dataloader.dataset.labeled):
        classes = DATASETS.get(dataset.type).METAINFO['classes']
        pipeline = [resized(step, side) for step in dataset.pipeline]
        # masks are as the model sees them: the ids of classes
        for step in pipeline:
            step.pop('reduce_zero_label', None)
        config.train_dataloader.dataset.labeled = dict(
            type='BaseSegDataset',
            data_root=str(root),
            data_prefix=dict(img_path='images', seg_map_path='masks'),
            img_suffix='.png',
            metainfo=dict(classes=classes),
            pipeline=pipeline,
        )
    unlabeled = config.train_dataloader.dataset.unlabeled
    if unlabeled is not None:
        unlabeled.pipeline = [resized(step, side) for step in unlabeled.pipeline]
    config.train_dataloader.update(batch_size=BATCH, num_workers=0, persistent_workers=False)
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=STEPS)
    if config.optim_wrapper.type == 'AmpOptimWrapper':  # for GPUs
        config.optim_wrapper.type = 'OptimWrapper'
        config.optim_wrapper.pop('loss_scale', None)
    for key in ('val_dataloader', 'val_cfg', 'val_evaluator', 'param_scheduler', 'resume'):
        config[key] = None
    for key in ('test_dataloader', 'test_cfg', 'test_evaluator', 'custom_hooks', 'load_from'):
        config[key] = None
    for name in ('checkpoint', 'visualization'):
        config.default_hooks.pop(name, None)
    config.work_dir, config.log_level = str(work_dir), 'ERROR'
    config.visualizer = dict(type='SegLocalVisualizer', name=work_dir.name)


def resized(step: Any, side: int) -> Any:
    """Gives a transform, or those in it, the size of the noise."""
    if not isinstance(step, Mapping):
        return [resized(part, side) for part in step]
    changed = dict(step)
    for key, value in step.items():
        if key in ('crop_size', 'scale', 'size') and value is not None:
            changed[key] = (side, side)
        elif key in ('scales', 'max_size'):
            changed[key] = [side] if key == 'scales' else side * 4
        elif key == 'transforms':
            changed[key] = [resized(part, side) for part in as_list(value)]
    return changed


def train(folder: str, method: str, root: Path) -> None:
    """Writes, trains and predicts by one model of a folder."""
    name, side = smallest_config(folder), SIDES.get(folder, SIDE)
    images = root / str(side)
    noise(images, side, 2)  # two classes, which all data sets have
    file = root / f'{folder}.py'
    add_cct(name, str(images / 'images'), str(file), method=method, force=True)
    own = load_config(str(CONFIGS / folder / f'{name}.py'), {})
    config = load_config(str(file), {})
    shrink(config, side, images, root / folder)

    runner = Runner.from_cfg(config)
    runner.model = revert_sync_batchnorm(runner.model)
    # MMSegmentation's weights: every one by its name
    own.model.pop('data_preprocessor')
    forget_initial_weights(own.model)
    if 'img_size' in own.model.backbone:
        own.model.backbone.img_size = (side, side)
    given = revert_sync_batchnorm(MODELS.build(own.model)).state_dict()
    loaded = runner.model.load_state_dict(dict(given), strict=False)
    decoders = [key for key in loaded.missing_keys if not key.startswith('auxiliary_head.')]
    if loaded.unexpected_keys or decoders:
        raise RuntimeError(f'weights without a place: {loaded.unexpected_keys}, {decoders}')
    runner.train()

    # in MMSegmentation's own model the trained weights predict the same
    model = runner.model.eval()
    published = copy.deepcopy(inference_config(config).model)
    plain, state = revert_sync_batchnorm(MODELS.build(published)).eval(), model.state_dict()
    plain.load_state_dict({k: v for k, v in state.items() if not is_training_only(k, type(model))})
    image = torch.randint(0, 256, (3, side, side), dtype=torch.uint8)
    meta = dict(ori_shape=(side, side), img_shape=(side, side), pad_shape=(side, side))
    batch = dict(inputs=[image], data_samples=[SegDataSample(metainfo=meta)])
    batch = model.data_preprocessor(batch, training=False)
    seg_logits = []
    for network in (model, plain):
        torch.manual_seed(0)  # SegNeXt's head draws the bases of its factorization
        with torch.no_grad():
            seg_logits.append(network.encode_decode(batch['inputs'], [dict(meta)]))
    if not torch.equal(*seg_logits) or not seg_logits[0].isfinite().all():
        raise RuntimeError('the published model predicts something else')


def main() -> None:
    """Trains each model and prints what comes of it, for the table of docs/models.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folders', nargs='*', metavar='FOLDER', help='by default all of them')
    parser.add_argument('--method', default='cct-strong', help='(default: %(default)s)')
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    init_default_scope('mmseg')
    outcomes: Counter[str] = Counter()
    for folder in options.folders or folders():
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as root:
            try:
                with contextlib.redirect_stdout(io.StringIO()):  # what a training says
                    train(folder, options.method, Path(root))
                outcome = 'trains'
            except UserError as error:
                outcome = f'refused: {error}'
            except Exception as error:
                outcome = f'fails: {error!r}'[:300]
                traceback.print_exc()
        outcomes[outcome.partition(':')[0]] += 1
        print(f'{folder}: {smallest_config(folder)} {outcome}', flush=True)
    print(', '.join(f'{number} {outcome}' for outcome, number in outcomes.items()))


if __name__ == '__main__':
    main()
