"""Comparison report of trainings: plain data, shown with pictures (HTML) or without (Markdown)."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.apis.run import Run
from mmseg_cct.config.shipped import command_line
from mmseg_cct.config.walk import at
from mmseg_cct.datasets.files.palette import chosen_colours
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.engine.findings import absent_from, findings, foreground_of, validation_findings
from mmseg_cct.engine.visualization.figures import png_bytes
from mmseg_cct.engine.visualization.label_maps import paint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.templates import Table, data_url, render
from mmseg_cct.version import __version__

from ..finished_runs import Evaluation, Picture, evaluate, predict_images
from .plots import plot_class_iou, plot_curves
from .round_tables import round_tables
from .scores import Score, class_scores, foreground_scores, mean_score, mean_verdict, score_table

_WIDEST = 640  # pixels of a picture in the HTML page
_DPI = 150  # sharp on screens with several pixels per CSS pixel

# Pictures of each run, by heading.
Sections = Mapping[str, Mapping[str, Sequence[Picture]]]


@dataclass(frozen=True)
class Report:
    """The content of the report, which `report.json` holds and the pages show."""

    title: str
    date: str  # as in 2026-11-30
    version: str  # of this package
    commands: list[str]  # write the report again, and test each run alone
    verdict: str  # how the runs compare, in a sentence
    notes: list[str]  # what a reader has to know, a sentence each
    runs: list[str]  # names
    settings: Table  # what shows whether the comparison is fair
    num_images: int  # of the test set
    scores: list[Score]  # by class, and the mean
    rounds: list[Table]  # about rounds of labelling, if the runs are some
    images: dict[str, list[str]]  # names of those shown, by section


def write_report(
    work_dirs: Mapping[str, str | Path],
    out: str | Path,
    num_pictures: int = 6,
    palette: str | None = None,
) -> Report:
    """Evaluates runs on their common test set; writes `report.html`, `report.md`, `report.json`.

    `work_dirs` are by the names of the runs in the report. The first page shows the `num_pictures`
    hardest test images, and as many of the first others, in colours of `chosen_colours`.

    Raises:
        UserError: A run is incomplete or has another test set.
    """
    for name in work_dirs:
        if name.splitlines() != [name]:
            raise UserError(f'run {name!r}', 'more than one line', 'a name on one line')
    # All that can be refused is, before the first evaluation, which takes minutes.
    runs = [Run.open(work_dir, name=name) for name, work_dir in work_dirs.items()]
    _check_same_test_set(runs)
    init_default_scope(runs[0].config.get('default_scope') or 'mmseg')
    out = Path(out)
    read = {folder for run in runs for folder in data_folders(run.config)}
    OutputFolder(out, 'record.json', read).claim()
    meta = runs[0].test_loader.dataset.metainfo
    classes, colours = meta['classes'], meta['palette']
    if palette is not None:
        colours = chosen_colours(palette, classes)
    evaluations = {}
    for run in runs:
        print(f'evaluating {run.name} ({run.checkpoint})', flush=True)
        evaluations[run.name] = evaluate(run)
    sections = _predict_sections(runs, evaluations, num_pictures)
    tests = [command_line('test', work_dir) for work_dir in work_dirs.values()]
    commands = [_own_command(work_dirs, out, num_pictures, palette), *tests]
    report = _compare(runs, evaluations, commands, sections)

    # The same content three times: to look at, to paste, to compute with.
    tables = dict(report=report, scores=score_table(report.scores, report.runs))
    write_text(
        out / 'report.md', render('apis/report/report.md.jinja', **tables)
    )  # without pictures
    page = render(
        'apis/report/report.html.jinja',
        **tables,
        figures=_draw(runs, evaluations, classes),
        legend=[*zip(classes, colours), ('ignored', (255, 255, 255))],
        sections={heading: _cases(by_run, colours) for heading, by_run in sections.items()},
    )
    write_text(out / 'report.html', page)
    write_text(out / 'report.json', json.dumps(asdict(report), ensure_ascii=False, indent=1) + '\n')
    return report


def _compare(
    runs: Sequence[Run],
    evaluations: Mapping[str, Evaluation],
    commands: list[str],
    sections: Sections,
) -> Report:
    """Collects what the report says."""
    dataset = runs[0].test_loader.dataset
    classes = dataset.metainfo['classes']
    iou = {name: evaluation.iou for name, evaluation in evaluations.items()}
    scores, mean = class_scores(iou, classes), mean_score(iou)
    index = foreground_of(classes)
    if index is None:
        verdict = mean_verdict(list(iou), scores, mean)
    else:
        more, verdict = foreground_scores(evaluations, classes, index)
        scores = sorted(scores, key=lambda each: each.name != str(classes[index]))  # this first
        scores[1:1] = more
    return Report(
        title=' and '.join(iou),
        date=date.today().isoformat(),
        version=__version__,
        commands=commands,
        verdict=verdict,
        notes=_notes(runs, evaluations, classes),
        runs=list(iou),
        settings=_settings(runs),
        num_images=len(dataset),
        scores=[*scores, mean],
        rounds=round_tables(runs, iou, classes),
        images={
            heading: [picture.name for picture in by_run[runs[0].name]]
            for heading, by_run in sections.items()
        },
    )


def _predict_sections(
    runs: Sequence[Run], evaluations: Mapping[str, Evaluation], num_pictures: int
) -> Sections:
    hard = hardest(list(evaluations.values()), num_pictures)
    size = len(runs[0].test_loader.dataset)
    first = [index for index in range(size) if index not in hard][:num_pictures]
    return {
        heading: {run.name: predict_images(run, indices) for run in runs}
        for heading, indices in {'Hard test images': hard, 'First test images': first}.items()
        if indices
    }


def _draw(
    runs: Sequence[Run], evaluations: Mapping[str, Evaluation], classes: Sequence[str]
) -> dict[str, str]:
    """Draws the IoU by class and the curves, also for narrow screens, as data URLs."""
    found = foreground_of(classes)
    measure = 'mIoU' if found is None else f'IoU.{classes[found]}'
    iou = {name: evaluation.iou for name, evaluation in evaluations.items()}
    figures = {
        'classes': plot_class_iou(iou, classes),
        'curves': plot_curves(runs, measure=measure),
        'narrow_curves': plot_curves(runs, 1, measure),
    }
    return {name: data_url(png_bytes(figure, _DPI)) for name, figure in figures.items()}


def hardest(evaluations: Sequence[Evaluation], count: int) -> list[int]:
    """Returns indices of the images with the lowest mIoU, averaged over the runs, worst first."""
    mean = np.mean([evaluation.image_miou for evaluation in evaluations], axis=0)
    return np.argsort(mean, kind='stable')[:count].tolist()


def _notes(
    runs: Sequence[Run], evaluations: Mapping[str, Evaluation], classes: Sequence[str]
) -> list[str]:
    """Collects what a reader has to know, each note once, with the runs that it is about."""
    found: dict[str, list[str]] = {}
    for run in runs:
        curve = [values['mIoU'] for values in run.scalars if 'mIoU' in values]
        evaluation = evaluations[run.name]
        scored = {
            str(name): round(100 * value, 2)
            for name, value, in_truth in zip(classes, evaluation.iou, evaluation.areas[2])
            if in_truth
        }
        absent = [str(name) for name in classes if str(name) not in scored]
        notes = [absent_from('test', absent)] if absent else []
        for note in [*notes, *findings(curve, scored), *_validation_notes(run, classes)]:
            found.setdefault(note, []).append(run.name)
    return [
        note if len(names) == len(runs) else f'{" and ".join(names)}: {note}'
        for note, names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def _validation_notes(run: Run, classes: Sequence[str]) -> Iterator[str]:
    logged = {key for values in run.scalars for key in values if key.startswith('IoU.')}
    absent = [str(name) for name in classes if f'IoU.{name}' not in logged]
    if logged and absent:
        yield absent_from('validation', absent)
    settings = (run.config.get('val_dataloader') or {}).get('dataset')
    if settings is not None:
        is_test_set = settings == run.config.test_dataloader.dataset
        yield from validation_findings(_length(settings), is_test_set)


def _cases(
    pictures: Mapping[str, Sequence[Picture]], palette: Sequence[Sequence[int]]
) -> list[dict]:
    """Returns what the page shows of each image: its name, and the pictures as data URLs."""
    return [
        dict(
            name=row[0].name,
            image=_shown(row[0].image),
            truth=_shown(paint(row[0].truth, palette)),
            predictions={
                name: _shown(paint(picture.prediction, palette))
                for name, picture in zip(pictures, row)
            },
        )
        for row in zip(*pictures.values())
    ]


def _shown(rgb: np.ndarray) -> str:
    height, width = rgb.shape[:2]
    if width > _WIDEST:
        size = _WIDEST, max(1, round(height * _WIDEST / width))
        rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_NEAREST)
    return data_url(cv2.imencode('.png', rgb[..., ::-1])[1].tobytes())


def _own_command(
    work_dirs: Mapping[str, str | Path], out: Path, num_pictures: int, palette: str | None
) -> str:
    named = [f'{name}={work_dir}' for name, work_dir in work_dirs.items()]
    options = ('--palette', palette) if palette else ()
    return command_line('report', *named, '--out', out, '--pictures', str(num_pictures), *options)


def _settings(runs: Sequence[Run]) -> Table:
    """Lists the settings of the runs that show whether the comparison is fair."""
    numbers = list(map(_numbers_of_images, runs))
    rows: dict[str, list[Any]] = {
        'labelled images': [labeled for labeled, _ in numbers],
        'unlabelled images': [unlabeled for _, unlabeled in numbers],
        'iterations': [at(run.config, 'train_cfg.max_iters') for run in runs],
        'seed': [at(run.config, 'randomness.seed') for run in runs],
        'median seconds per iteration': [_seconds_per_iteration(run) for run in runs],
    }
    header = ['', *(run.name for run in runs)]
    cells = (['' if value is None else str(value) for value in values] for values in rows.values())
    return Table(header, [[name, *values] for name, values in zip(rows, cells)])


def _numbers_of_images(run: Run) -> tuple[int | None, int]:
    """Returns how many labelled and unlabelled images a run trained on."""
    if recorded := run.labels:  # more masks may be there by now
        return len(recorded.labeled), recorded.unlabeled
    dataset = at(run.config, 'train_dataloader.dataset') or {}
    labeled = branch_settings(dataset, 'labeled') or dataset
    unlabeled = branch_settings(dataset, 'unlabeled')
    return _length(labeled) if labeled else None, _length(unlabeled) if unlabeled else 0


def _length(dataset: dict) -> int:
    return len(DATASETS.build(copy.deepcopy(dataset)))


def _seconds_per_iteration(run: Run) -> str:
    times = [values['time'] for values in run.scalars if 'time' in values and 'lr' in values]
    return f'{np.median(times):.2f}' if times else 'not logged'


def _check_same_test_set(runs: Sequence[Run]) -> None:
    if not runs:
        raise UserError('report', 'no run', 'at least one')
    for run in runs[1:]:
        if run.config.test_dataloader.dataset != runs[0].config.test_dataloader.dataset:
            expected = 'the same test_dataloader.dataset'
            raise UserError(run.name, f'a different test set than {runs[0].name}', expected)
