"""Finished trainings: their config, checkpoint and log, and their predictions on the test set."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.runner import Runner
from mmengine.utils import import_modules_from_strings
from mmseg.evaluation import IoUMetric
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from mmseg_cct.apis.inference import load_model
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.config.text import read_config_text
from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.engine.checkpoints import newest_checkpoint, read_checkpoint
from mmseg_cct.engine.foreign_config import saved_config
from mmseg_cct.engine.prediction import fused_test_step
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.classes import order_problems
from mmseg_cct.preflight.files import build_evaluation_set
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import usable_cores
from mmseg_cct.utils.text import error_line


@dataclass(frozen=True)
class Run:
    """A finished training; `name` is for messages and reports."""

    name: str
    config: Config
    checkpoint: str  # path of the last one
    scalars: list[dict]  # logged values, one dict with its `step` per logged iteration
    content: Mapping[str, Any] | None = None  # of the checkpoint, so that it is read once

    @cached_property
    def model(self) -> Any:
        """The trained model in evaluation mode."""
        return load_model(self.config, self.checkpoint, get_device(), content=self.content)

    @cached_property
    def test_loader(self) -> DataLoader:
        """The test set in order, each image once; its files are checked."""
        loader = self.config.test_dataloader
        dataset = build_evaluation_set(loader.dataset, f'{self.name}: test_dataloader.dataset')
        saved = ((self.content or {}).get('meta') or {}).get('dataset_meta')
        raise_problems(order_problems(dataset.metainfo, saved, self.checkpoint))
        own = dict(
            batch_size=loader.get('batch_size') or 1,
            num_workers=min(loader.get('num_workers') or 0, usable_cores()),
            sampler=dict(type='DefaultSampler', shuffle=False),  # a result's place is its image's
        )
        return Runner.build_dataloader(dict(own, dataset=dataset))


@dataclass(frozen=True)
class Evaluation:
    """IoU of a run on its test set."""

    iou: np.ndarray  # (C,) in [0, 1]; nan where no mask shows a class
    image_miou: np.ndarray  # (N,), the mean of each test image over the classes that it shows
    areas: np.ndarray  # (3, C) pixels found, predicted and in the truth


@dataclass(frozen=True)
class Picture:
    """A test image with its ground truth and a prediction."""

    name: str  # of the file, or the number of an image without one
    image: np.ndarray  # (H, W, 3) uint8, RGB
    truth: np.ndarray  # (H, W) class ids
    prediction: np.ndarray  # (H, W) class ids


def find_run(name: str, work_dir: Path) -> Run:
    """Reads a training's config, checkpoint and log from its work directory, or a checkpoint there.

    Raises:
        UserError: If the checkpoint is missing or damaged, or has no config with a test set.
    """
    checkpoint: str | None
    if work_dir.is_file():
        checkpoint, work_dir = str(work_dir), work_dir.parent
    else:
        checkpoint = newest_checkpoint(str(work_dir))
    if checkpoint is None:
        raise UserError(
            work_dir, 'no checkpoint in it', 'the work directory of a training that has written one'
        )
    # The folder may hold configs of other trainings; the checkpoint's own is the one that fits.
    content = read_checkpoint(checkpoint)
    config = _trained_config(content, checkpoint, work_dir)
    if (config.get('test_dataloader') or {}).get('dataset') is None:
        raise UserError(checkpoint, 'its config has no test_dataloader', 'a test set')
    require_one_domain(config, checkpoint)
    kept = {key: content[key] for key in ('meta', 'state_dict')}  # without the optimizer's state
    return Run(name, config, checkpoint, read_scalars(work_dir), kept)


def _trained_config(content: Mapping[str, Any], checkpoint: str, work_dir: Path) -> Config:
    """Returns the config that a checkpoint was trained with; a folder may hold several."""
    config = saved_config(content, checkpoint)
    if config is None:
        raise UserError(checkpoint, 'has no config', 'the checkpoint of a training')
    custom = config.get('custom_imports')
    # A checkpoint alone must not import anything; the configs dumped beside it are code anyway.
    dumped = (*work_dir.glob('*.py'), *work_dir.glob('*/vis_data/config.py'))
    if custom and any(_imports(file) == custom for file in dumped):
        imports = custom.get('imports') if isinstance(custom, Mapping) else None
        for name in [imports] if isinstance(imports, str) else imports or ():
            if _lies_in(str(name), work_dir):
                found = f'custom_imports: {name} lies in {work_dir}, whose files are data'
                raise UserError(checkpoint, found, 'modules from elsewhere (PYTHONPATH)')
        try:
            import_modules_from_strings(**custom)
        except (ImportError, TypeError) as error:
            expected = 'modules that can be imported (PYTHONPATH)'
            raise UserError(checkpoint, f'custom_imports: {error_line(error)}', expected) from error
    return config


def _lies_in(module: str, folder: Path) -> bool:
    """Whether a module is a file below a folder; nothing is imported to find out."""
    first, *rest = module.split('.')
    spec = find_spec(first) if first else None
    places = spec and (spec.submodule_search_locations or [str(spec.origin)])
    real = folder.resolve()
    return any(real in Path(place, *rest).resolve().parents for place in places or ())


def _imports(config_file: Path) -> Any:
    """Reads the `custom_imports` of a config that a training dumped."""
    with suppress(UserError):
        text = read_utf8(config_file, 'a config')
        return read_config_text(text, str(config_file)).get('custom_imports')
    return None


def read_scalars(work_dir: Path) -> list[dict]:
    """Reads the values of each logged iteration across resumes, sorted by `step`.

    Raises:
        UserError: If a line is damaged. A last one that a kill has cut off is left out, with a
            warning: the resumed training logs that iteration again.
    """
    by_step: dict[tuple[int, bool], dict] = {}
    # one folder per start, named by time
    for file in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for values in _logged_values(file):
            if 'step' in values:
                # A resumed run logs repeated iterations again; the last one counts.
                by_step[values['step'], 'mIoU' in values] = values
    return [by_step[key] for key in sorted(by_step)]


def _logged_values(file: Path) -> Iterator[dict]:
    """Yields the values of each line of a log."""
    lines = read_utf8(file, 'a log of mmengine').split('\n')
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError(f'{type(values).__name__} instead of an object')
            for key, value in values.items():
                if not isinstance(value, int if key == 'step' else (int, float)):
                    raise ValueError(f'{key} is {value!r}')
                float(value)  # of any number of digits
        except (ValueError, OverflowError, RecursionError) as error:
            if number == len(lines):  # no line end after it
                warn(f'{file}, line {number}: cut off in the middle; left out')
                return
            raise UserError(
                f'{file}, line {number}', error_line(error, 120), 'a JSON object of logged numbers'
            ) from None
        yield values


@torch.no_grad()
def evaluate(run: Run) -> Evaluation:
    """Evaluates a run on its whole test set.

    Raises:
        UserError: If nothing in the test set is labelled.
    """
    key, num_classes = 'test_dataloader.dataset', len(run.test_loader.dataset.metainfo['classes'])
    areas: list[tuple[Tensor, ...]] = []
    test_step = fused_test_step(run.model)
    for batch in run.test_loader:
        for sample in test_step(batch):
            if 'gt_sem_seg' not in sample:
                raise UserError(f'{run.name}: {key}', 'has no masks', 'labelled images')
            predicted = sample.pred_sem_seg.data.squeeze(0).cpu()
            truth = sample.gt_sem_seg.data.squeeze(0).cpu()
            areas.append(IoUMetric.intersect_and_union(predicted, truth, num_classes, IGNORE_INDEX))
    intersection, union, found, in_truth = (torch.stack(parts) for parts in zip(*areas))
    if not in_truth.any():
        raise UserError(f'{run.name}: {key}', 'no pixel with a class', 'labelled images')
    # By image to find the hard ones, over all images for the scores; what no mask shows has none.
    by_image = intersection / union
    shown = in_truth > 0
    image_miou = torch.where(shown, by_image, 0).sum(1) / shown.sum(1)
    total = torch.stack([intersection, found, in_truth]).sum(1)
    iou = torch.where(total[2] > 0, total[0] / union.sum(0), torch.nan)
    return Evaluation(iou.numpy(), image_miou.numpy(), total.numpy())


@torch.no_grad()
def predict_images(run: Run, indices: Sequence[int]) -> list[Picture]:
    """Predicts chosen images of the test set, in the order of their indices."""
    loader = run.test_loader
    pictures = []
    for index, item in zip(indices, Subset(loader.dataset, indices)):
        (sample,) = run.model.test_step(loader.collate_fn([item]))
        path = sample.metainfo.get('img_path')
        pictures.append(
            Picture(
                name=Path(path).name if path else f'image {index}',
                image=as_rgb(item['inputs'].numpy().transpose(1, 2, 0)),
                truth=sample.gt_sem_seg.data.squeeze(0).cpu().numpy(),
                prediction=sample.pred_sem_seg.data.squeeze(0).cpu().numpy(),
            )
        )
    return pictures
