"""Comparison report of trainings: a page with pictures, and its content as JSON."""

import copy
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.config.walk import changed_settings, get_by_key, leaf_sets, leaves
from mmseg_cct.datasets.files.palette import chosen_colors
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.engine.figures import png_bytes
from mmseg_cct.engine.findings import absent_from, findings, validation_findings
from mmseg_cct.engine.labels_record import below_folder, trained_images
from mmseg_cct.engine.metrics.scores import foreground_of
from mmseg_cct.engine.visualization import Palette, paint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.templates import Table, data_url, render
from mmseg_cct.utils.text import command_line
from mmseg_cct.version import __version__

from ..run import Run
from .evaluation import Evaluation, Picture, evaluate, predict_test_images
from .plots import plot_curves
from .scores import (
    ONE_RUN_EACH,
    Score,
    class_scores,
    mean_by_run,
    mean_score,
    mean_verdict,
    score_table,
)

_WIDEST = 640  # pixels of a picture in the page
_PICTURES = 6  # images in the page
_DPI = 150  # sharp on screens with several pixels per CSS pixel
# Two runs that differ in one of these do not show what the method alone brings.
_COMPARED = ('iterations', 'batch size', 'crop', 'seed', 'labelled images')
# Likewise: the network, the weights that it starts from, and how it learns.
_NETWORK = (
    *('model.backbone', 'model.neck', 'model.decode_head', 'model.pretrained', 'load_from'),
    *(f'optim_wrapper.{key}' for key in ('optimizer', 'paramwise_cfg', 'accumulative_counts')),
)
_OF_METHOD_OR_DEVICE = re.compile(r'decode_head\.loss_|norm_cfg')
# Rounds of labelling have these in common.
_TRAINING = ('model', 'train_dataloader', 'optim_wrapper')
_MOST = 6  # differences that are named


@dataclass(frozen=True)
class Report:
    """The content of the report, which `report.json` holds and the page shows."""

    title: str
    date: str  # as in 2026-11-30
    version: str  # of this package
    command: str  # writes the report again
    verdict: str  # how the runs compare, in a sentence
    notes: list[str]  # what a reader has to know, a sentence each
    runs: list[str]  # names
    settings: Table  # what shows whether the comparison is fair
    num_images: int  # of the test set
    scores: list[Score]  # by class, and the mean
    confusions: dict[str, list[str]]  # the largest of each run, a line each
    images: list[str]  # names of those shown


def write_report(runs: Sequence[Run], out: str | Path, palette: str | None = None) -> Report:
    """Evaluates runs on their common test set; writes `report.html` and `report.json`.

    The page shows the hardest test images, in colours of `chosen_colors`.

    Raises:
        UserError: A run is incomplete or has another test set.
    """
    # All that can be refused is, before the first evaluation, which takes minutes.
    init_default_scope(runs[0].config.get('default_scope') or 'mmseg')
    datasets = [run.test_loader and run.config.test_dataloader.dataset for run in runs]
    for run, dataset in zip(runs, datasets):
        if dataset != datasets[0]:
            problem = f'its test_dataloader.dataset differs from that of {runs[0].name}'
            raise UserError(run.name, problem)
    out = Path(out)
    inputs = {folder for run in runs for folder in data_folders(run.config)}
    with OutputFolder(out, 'record.json', inputs):
        meta = runs[0].test_loader.dataset.metainfo
        classes = meta['classes']
        colours = chosen_colors(palette, classes) if palette else meta['palette']
        evaluations = {}
        for run in runs:
            print(f'evaluating {run.name} ({run.checkpoint})', flush=True)
            evaluations[run.name] = evaluate(run)
        hard = hardest(list(evaluations.values()), _PICTURES)
        pictures = {run.name: predict_test_images(run, hard) for run in runs}
        named = [f'{run.name}={run.checkpoint}' for run in runs]
        options = (*runs[0].domain_option, *(('--palette', palette) if palette else ()))
        command = command_line('report', *named, '--out', out, *options)
        report = _compare(runs, evaluations, command, pictures)
        page = render(
            'apis/report/report.html.jinja',
            report=report,
            scores=score_table(report.scores, report.runs),
            legend=[*zip(classes, colours), ('ignored', (255, 255, 255))],
            curves=data_url(png_bytes(plot_curves(runs), _DPI)),
            cases=_cases(pictures, colours),
        )
        content = json.dumps(asdict(report), ensure_ascii=False, indent=1)
        write_text(out / 'report.json', f'{content}\n')
        write_text(out / 'report.html', page)
    return report


def _compare(
    runs: Sequence[Run],
    evaluations: Mapping[str, Evaluation],
    command: str,
    pictures: Mapping[str, Sequence[Picture]],
) -> Report:
    dataset = runs[0].test_loader.dataset
    classes = dataset.metainfo['classes']
    scores, mean = class_scores(evaluations, classes), mean_score(evaluations)
    index = foreground_of(classes)
    if index is None:
        verdict = mean_verdict(evaluations, scores)
    else:
        scores = sorted(scores, key=lambda score: score.name != str(classes[index]))  # this first
        values = ', '.join(f'{run} {100 * e.iou[index]:.1f}' for run, e in evaluations.items())
        verdict = f'IoU of {classes[index]} in %: {values}. {ONE_RUN_EACH}'
    rounds = _rounds(runs)
    if unequal := unequal_settings(runs, bool(rounds)):
        problem = f'These runs cannot be compared: they differ in {unequal}'
        verdict = f'{problem}. mIoU: {mean_by_run(evaluations)}.'
    rows = zip(*(_settings(run).items() for run in runs))
    return Report(
        title=f'{" and ".join(evaluations)} on {data_set_name(runs[0].config)}',
        date=date.today().isoformat(),
        version=__version__,
        command=command,
        verdict=verdict,
        notes=[*rounds, *_notes(runs, evaluations, classes)],
        runs=list(evaluations),
        settings=Table(
            ['', *evaluations],
            [
                [row[0][0], *('' if value is None else str(value) for _, value in row)]
                for row in rows
            ],
        ),
        num_images=len(dataset),
        scores=[*scores, mean],
        confusions={
            run: [
                f'{100 * share:.0f} % are {classes[truth]} taken for {classes[predicted]}'
                for truth, predicted, share in evaluation.confusions(2)
            ]
            for run, evaluation in evaluations.items()
        },
        images=[picture.name for picture in pictures[runs[0].name]],
    )


def _settings(run: Run) -> dict[str, Any]:
    """Returns the settings of a run that show whether a comparison with it is fair."""
    dataset = get_by_key(run.config, 'train_dataloader.dataset') or {}
    labeled = branch_settings(dataset, 'labeled') or dataset
    unlabeled = branch_settings(dataset, 'unlabeled')
    numbers = {'labelled images': labeled, 'unlabelled images': unlabeled}
    labels = run.labels  # more masks may be there by now
    recorded = labels and dict(zip(numbers, (len(labels.labeled), labels.unlabeled)))
    crop = get_by_key(run.config, 'model.data_preprocessor.size')
    optimizer = [get_by_key(run.config, f'optim_wrapper.optimizer.{key}') for key in ('type', 'lr')]
    return {
        **(recorded or {key: _length(part) if part else 0 for key, part in numbers.items()}),
        'iterations': (run.content.get('meta') or {}).get('iter'),
        'batch size': get_by_key(run.config, 'train_dataloader.batch_size'),
        'crop': crop and '×'.join(str(side) for side in reversed(crop)),
        'seed': get_by_key(run.config, 'randomness.seed'),
        'encoder': get_by_key(run.config, 'model.backbone.type'),
        'optimizer, learning rate': ', '.join(map(str, optimizer)),
    }


def _rounds(runs: Sequence[Run]) -> list[str]:
    """Says what runs show that differ in labels that were added, as rounds of labelling do."""
    trainings = [{key: run.config.get(key) for key in _TRAINING} for run in runs]
    lists = [set(run.labels.labeled) for run in runs if run.labels]
    are_alike = not any(changed_settings(trainings[0], training) for training in trainings)
    if len(runs) != len(lists) or len(runs) < 2 or not are_alike:
        return []
    numbers = ', '.join(str(len(names)) for names in lists)
    text = f'rounds of labelling ({numbers} labels): they differ by labels and training together'
    return [text] if all(before < after for before, after in itertools.pairwise(lists)) else []


def unequal_settings(runs: Sequence[Run], are_rounds: bool = False) -> str:
    """Names the settings that make a comparison unfair, with their values.

    Those of the method are meant to differ. Rounds of labelling have other numbers of labels.
    """
    settings, differences = [_settings(run) for run in runs], []
    for key in _COMPARED:
        values = list(dict.fromkeys(of_run[key] for of_run in settings if of_run[key] is not None))
        if len(values) > 1 and not (are_rounds and key == 'labelled images'):
            differences.append(f'{key} ({", ".join(map(str, values))})')
    networks = [dict(leaves({key: get_by_key(r.config, key) for key in _NETWORK})) for r in runs]
    for key in sorted({*itertools.chain(*networks)}):
        values = list(dict.fromkeys(str(network.get(key)) for network in networks))
        if len(values) > 1 and not _OF_METHOD_OR_DEVICE.search(key):
            differences.append(f'{key} ({", ".join(values)})')
    # another machine has the images in another folder
    lists = {tuple(below_folder(run.labels.labeled)) for run in runs if run.labels}
    if len(lists) > 1 and len({len(names) for names in lists}) == 1:
        differences.append('which images are labelled')
    if len(differences) > _MOST:
        differences[_MOST:] = [f'{len(differences) - _MOST} more settings']
    return ', '.join(differences)


def data_set_name(config: Config) -> str:
    """Names the data set of a config by its folder, or by its class."""
    _, settings = next(iter(leaf_sets(config.test_dataloader.dataset)))
    folder = settings.get('data_root') or settings.get('image_dir') or ''
    # of data/cracks/val/images, the second name tells most
    names = [name for name in Path(folder).parts if name not in ('images', 'val')]
    return names[-1] if names else str(settings['type'])


def _length(dataset: dict) -> int:
    return len(DATASETS.build(copy.deepcopy(dataset)))


def hardest(evaluations: Sequence[Evaluation], count: int) -> list[int]:
    """Returns indices of the images with the lowest mIoU, averaged over the runs, worst first."""
    mean = np.mean([evaluation.image_miou for evaluation in evaluations], axis=0)
    return np.argsort(mean, kind='stable')[:count].tolist()


def _notes(
    runs: Sequence[Run], evaluations: Mapping[str, Evaluation], classes: Sequence[str]
) -> list[str]:
    """Collects what a reader has to know, each note once, with the runs that it is about."""
    runs_of: dict[str, list[str]] = {}
    for run in runs:
        shown = evaluations[run.name].shown
        absent = [str(name) for name, seen in zip(classes, shown) if not seen]
        notes = [absent_from('test', absent)] if absent else []
        notes += trained_images(run.labels, run.test_loader.dataset)
        curve = [values['mIoU'] for values in run.scalars if 'mIoU' in values]
        notes += findings(curve, {})  # classes at 0 have a row of the table
        settings = (run.config.get('val_dataloader') or {}).get('dataset')
        if settings is not None:
            is_test_set = settings == run.config.test_dataloader.dataset
            notes += validation_findings(_length(settings), is_test_set)
        for note in notes:
            runs_of.setdefault(note, []).append(run.name)
    return [
        note if len(names) == len(runs) else f'{" and ".join(names)}: {note}'
        for note, names in sorted(runs_of.items(), key=lambda item: -len(item[1]))
    ]


def _cases(pictures: Mapping[str, Sequence[Picture]], palette: Palette) -> list[dict]:
    """Returns what the page shows of each image: its name, and the pictures as data URLs."""
    return [
        dict(
            name=row[0].name,
            image=_shown(row[0].image),
            truth=_shown(paint(row[0].truth, palette)),
            predictions=dict(zip(pictures, (_shown(paint(p.prediction, palette)) for p in row))),
        )
        for row in zip(*pictures.values())
    ]


def _shown(rgb: np.ndarray) -> str:
    """Returns a picture as a data URL, no wider than the page shows it."""
    height, width = rgb.shape[:2]
    if width > _WIDEST:
        size = _WIDEST, max(1, round(height * _WIDEST / width))
        rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_NEAREST)
    return data_url(cv2.imencode('.png', rgb[..., ::-1])[1].tobytes())
