"""Comparison report of trainings: IoU by class, training curves and predictions."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from mmengine.runner import Runner, find_latest_checkpoint
from mmseg.evaluation import IoUMetric
from mmseg.registry import DATASETS
from torch import Tensor

from mmseg_cct.apis.inference import load_model
from mmseg_cct.errors import UserError
from mmseg_cct.utils.markdown import markdown_table


@dataclass(frozen=True)
class Run:
    """A finished training.

    Attributes:
        name: Name in the report.
        config: Config of the training.
        checkpoint: Path of the last checkpoint.
        scalars: Logged values, one dict with its `step` per logged iteration.
    """

    name: str
    config: Config
    checkpoint: str
    scalars: list[dict]


@dataclass(frozen=True)
class Evaluation:
    """IoU and first predictions of a run on its test set.

    Attributes:
        iou: `(C,)` IoU by class in [0, 1]; nan where a class neither occurs nor is predicted.
        images: First images, `(H, W, 3)` uint8, RGB.
        truths: Their ground truth, `(H, W)` class ids.
        predictions: Their predictions, `(H, W)` class ids.
    """

    iou: np.ndarray
    images: list[np.ndarray]
    truths: list[np.ndarray]
    predictions: list[np.ndarray]


def write_report(
    work_dirs: Mapping[str, str | Path], out: str | Path, num_pictures: int = 8
) -> Path:
    """Evaluates runs on their common test set and writes `report.md` with its pictures.

    Args:
        work_dirs: Work directories of the trainings, by name.
        out: Output folder.
        num_pictures: Number of test images in the picture grid, from the first on.

    Returns:
        Path of the report. A `UserError` names a run that is incomplete or has another test set.
    """
    runs = [find_run(name, Path(work_dir)) for name, work_dir in work_dirs.items()]
    _check_same_test_set(runs)
    init_default_scope(runs[0].config.get('default_scope', 'mmseg'))
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    evaluations = {}
    for run in runs:
        print(f'evaluating {run.name} ({run.checkpoint})', flush=True)
        evaluations[run.name] = evaluate(run, num_pictures)
    meta = DATASETS.build(copy.deepcopy(runs[0].config.test_dataloader.dataset)).metainfo
    classes, palette = meta['classes'], meta['palette']

    plot_curves(runs).savefig(out / 'curves.png', dpi=100)
    plot_grid(evaluations, classes, palette).savefig(out / 'pictures.png', dpi=100)
    text = '\n\n'.join(
        [
            f'# {" and ".join(run.name for run in runs)}',
            _settings_table(runs),
            f'## IoU in % on the test set of {_test_size(runs[0])} images',
            iou_table({name: evaluation.iou for name, evaluation in evaluations.items()}, classes),
            '## Training\n\n![loss and ramp curves](curves.png)',
            f'## The first {len(next(iter(evaluations.values())).images)} test images\n\n'
            '![image, truth and predictions](pictures.png)\n',
        ]
    )
    (out / 'report.md').write_text(text, encoding='utf-8')
    return out / 'report.md'


def find_run(name: str, work_dir: Path) -> Run:
    """Reads a training's config, checkpoint and log from its work directory.

    Args:
        name: Name in the report.
        work_dir: Work directory of the training.

    Returns:
        The run.

    Raises:
        UserError: The config or the checkpoint is missing.
    """
    configs = sorted(work_dir.glob('*.py'), key=lambda file: file.stat().st_mtime)
    if not configs:
        raise UserError(f'{work_dir}: no config in it; expected the work directory of a training')
    if not (work_dir / 'last_checkpoint').is_file():
        raise UserError(
            f'{work_dir}: no last_checkpoint; expected the directory of a '
            'training that has written one'
        )
    checkpoint = find_latest_checkpoint(str(work_dir))
    return Run(name, Config.fromfile(configs[-1]), checkpoint, read_scalars(work_dir))


def read_scalars(work_dir: Path) -> list[dict]:
    """Reads the log of a training across resumes.

    Args:
        work_dir: Work directory of the training.

    Returns:
        Logged values of training and validation, sorted by `step`.
    """
    by_step: dict[tuple[int, bool], dict] = {}
    for file in sorted(
        work_dir.glob('*/vis_data/scalars.json')
    ):  # one folder per start, named by time
        for line in file.read_text(encoding='utf-8').splitlines():
            values = json.loads(line)
            if 'step' in values:
                # A resumed run logs repeated iterations again; the last one counts.
                by_step[values['step'], 'mIoU' in values] = values
    return [by_step[key] for key in sorted(by_step)]


@torch.no_grad()
def evaluate(run: Run, num_pictures: int) -> Evaluation:
    """Evaluates a run on its test set and keeps the first `num_pictures` predictions."""
    model = load_model(run.config, run.checkpoint, get_device())
    loader = Runner.build_dataloader(run.config.test_dataloader)
    num_classes = len(loader.dataset.metainfo['classes'])
    areas: list[tuple[Tensor, ...]] = []
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for batch in loader:
        for image, sample in zip(batch['inputs'], model.test_step(batch)):
            predicted = sample.pred_sem_seg.data.squeeze(0).cpu()
            truth = sample.gt_sem_seg.data.squeeze(0).cpu()
            areas.append(IoUMetric.intersect_and_union(predicted, truth, num_classes, 255))
            if len(kept) < num_pictures:
                rgb = image.numpy().transpose(1, 2, 0)[..., ::-1]
                kept.append((rgb, truth.numpy(), predicted.numpy()))
    intersection, union = (sum(parts) for parts in list(zip(*areas))[:2])
    images, truths, predictions = (list(part) for part in zip(*kept)) if kept else ([], [], [])
    return Evaluation((intersection / union).numpy(), images, truths, predictions)


def iou_table(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> str:
    """Formats IoU by class in Markdown, with the mean in the last row.

    Args:
        iou: `(C,)` IoU in [0, 1], by run.
        classes: C names.

    Returns:
        Table in %. With two runs, a further column is the second minus the first.
    """
    columns = {name: np.append(values, np.nanmean(values)) * 100 for name, values in iou.items()}
    cells = {name: [f'{value:.1f}' for value in column] for name, column in columns.items()}
    if len(columns) == 2:
        first, second = columns.values()
        cells['difference'] = [f'{value:+.1f}' for value in second - first]
    names = [*classes, '**mean**']
    rows = [[name, *(column[row] for column in cells.values())] for row, name in enumerate(names)]
    return markdown_table(['class', *cells], rows)


def plot_curves(runs: Sequence[Run]) -> Figure:
    """Plots logged curves: L_s, L_u, ramps, and mIoU on the validation set.

    A panel leaves out runs that did not log its value.
    """
    panels = {
        'supervised loss L_s': _values_starting('decode.loss'),
        'consistency loss L_u': _values_starting('aux.consistency'),
        'ramps': _values_starting('decode_head.', 'auxiliary_head.', 'loss_consistency.'),
        'mIoU on val, %': _values_starting('mIoU'),
    }
    figure = Figure(figsize=(12, 3), layout='constrained')
    for axes, (title, curves_of) in zip(figure.subplots(1, len(panels)), panels.items()):
        for index, run in enumerate(runs):
            for key, (steps, values) in curves_of(run).items():
                label = f'{run.name}: {key}' if title == 'ramps' else run.name
                axes.plot(steps, values, color=f'C{index}', label=label)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
        axes.set_ylim(bottom=0)
        if axes.lines:
            axes.legend(fontsize=7)
    return figure


def plot_grid(
    evaluations: Mapping[str, Evaluation], classes: Sequence[str], palette: Sequence[Sequence[int]]
) -> Figure:
    """Plots images, ground truth and predictions of each run, one image per column.

    Args:
        evaluations: Evaluations on the same images, by run.
        classes: C names.
        palette: C colours, RGB in [0, 255].

    Returns:
        The figure, with a legend of the classes below.
    """
    first = next(iter(evaluations.values()))
    colours = np.full((256, 3), 255, np.uint8)
    colours[: len(palette)] = palette
    rows = {'image': first.images, 'truth': [colours[ids] for ids in first.truths]}
    for name, evaluation in evaluations.items():
        rows[name] = [colours[ids] for ids in evaluation.predictions]

    side = 1.2
    figure = Figure(figsize=(side * max(len(first.images), 1) + 0.4, side * len(rows) + 0.4))
    grid = figure.subplots(len(rows), max(len(first.images), 1), squeeze=False)
    for line, (name, pictures) in zip(grid, rows.items()):
        line[0].set_ylabel(name, fontsize=9)
        for axes in line:
            axes.set_xticks([])
            axes.set_yticks([])
        for axes, picture in zip(line, pictures):
            axes.imshow(picture, interpolation='nearest')
    patches = [
        Patch(color=f'#{red:02x}{green:02x}{blue:02x}', label=name)
        for name, (red, green, blue) in zip(classes, palette)
    ]
    figure.legend(
        handles=patches, loc='lower center', ncols=len(classes), fontsize=8, frameon=False
    )
    figure.subplots_adjust(left=0.04, right=0.995, top=0.99, bottom=0.08, wspace=0.04, hspace=0.04)
    return figure


def _settings_table(runs: Sequence[Run]) -> str:
    """Settings of the runs, which show whether the comparison is fair."""
    rows = {
        'labelled images': [_labelled(run) for run in runs],
        'unlabelled images': [_unlabelled(run) for run in runs],
        'iterations': [run.config.train_cfg.max_iters for run in runs],
        'seed': [run.config.get('randomness', {}).get('seed') for run in runs],
        'median seconds per iteration': [_seconds_per_iteration(run) for run in runs],
    }
    return markdown_table(
        ['', *(run.name for run in runs)],
        [[name, *map(str, values)] for name, values in rows.items()],
    )


def _labelled(run: Run) -> int | str:
    dataset = run.config.train_dataloader.dataset
    return _length(dataset.get('labeled', dataset))


def _unlabelled(run: Run) -> int | str:
    dataset = run.config.train_dataloader.dataset.get('unlabeled')
    return _length(dataset) if dataset else 0


def _test_size(run: Run) -> int | str:
    return _length(run.config.test_dataloader.dataset)


def _length(dataset: dict) -> int:
    return len(DATASETS.build(copy.deepcopy(dataset)))


def _seconds_per_iteration(run: Run) -> str:
    times = [values['time'] for values in run.scalars if 'time' in values and 'lr' in values]
    return f'{np.median(times):.2f}' if times else 'not logged'


def _check_same_test_set(runs: Sequence[Run]) -> None:
    if not runs:
        raise UserError('report: no run; expected at least one')
    for run in runs[1:]:
        if run.config.test_dataloader.dataset != runs[0].config.test_dataloader.dataset:
            raise UserError(
                f'{run.name}: another test set than {runs[0].name}; expected '
                'one and the same test_dataloader.dataset'
            )


Curves = dict[str, tuple[list[int], list[float]]]


def _values_starting(*prefixes: str) -> Callable[[Run], Curves]:
    """Makes a function that collects a run's curves by the prefixes of their names."""

    def curves(run: Run) -> Curves:
        names = {key for values in run.scalars for key in values if key.startswith(prefixes)}
        points = {
            name: [(values['step'], values[name]) for values in run.scalars if name in values]
            for name in sorted(names)
        }
        return {
            name: ([step for step, _ in pairs], [value for _, value in pairs])
            for name, pairs in points.items()
        }

    return curves
