"""Comparison report of trainings, in Markdown and as one self-contained HTML page."""

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import cv2
import jinja2
import numpy as np
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation.findings import (
    detection_scores,
    findings,
    foreground_of,
    validation_findings,
)
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.markdown import markdown_table
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.palette import chosen_colours
from mmseg_cct.utils.text import signed
from mmseg_cct.visualization.figures import png_bytes
from mmseg_cct.visualization.label_maps import paint

from .plots import plot_class_iou, plot_curves, plot_grid
from .rounds import labels_of, round_tables
from .runs import Evaluation, Picture, Run, evaluate, find_run, predict_images

_TEMPLATE = Path(__file__).with_name('report.html.jinja')
_WIDEST = 640  # pixels of a picture in the HTML page
_DPI = 150  # sharp on screens with several pixels per CSS pixel


def write_report(
    work_dirs: Mapping[str, str | Path],
    out: str | Path,
    num_pictures: int = 6,
    palette: str | None = None,
) -> Path:
    """Evaluates runs on their common test set and writes `report.md` and `report.html`.

    Returns the path of `report.md`. The page shows the `num_pictures` hardest test images, and as
    many of the first others; `palette` is as in `chosen_colours`. A `UserError` names a run that is
    incomplete or has a different test set.
    """
    for name in work_dirs:
        if name.splitlines() != [name]:
            raise UserError(f'run {name!r}: more than one line; expected a name on one line')
    runs = [find_run(name, Path(work_dir)) for name, work_dir in work_dirs.items()]
    _check_same_test_set(runs)
    init_default_scope(runs[0].config.get('default_scope') or 'mmseg')
    out = Path(out)
    read = {folder for run in runs for folder in data_folders(run.config)}
    OutputFolder(out, 'report.json', read).claim()
    meta = runs[0].test_loader.dataset.metainfo
    classes, colours = meta['classes'], meta['palette']
    if palette is not None:
        colours = chosen_colours(palette, classes)
    evaluations = {}
    for run in runs:
        print(f'evaluating {run.name} ({run.checkpoint})', flush=True)
        evaluations[run.name] = evaluate(run)
    iou = {name: evaluation.iou for name, evaluation in evaluations.items()}
    size = len(runs[0].test_loader.dataset)

    hard = hardest(list(evaluations.values()), num_pictures)
    first = [i for i in range(size) if i not in hard][:num_pictures]
    shown = {
        title: {run.name: predict_images(run, indices) for run in runs}
        for title, indices in {'Hard test images': hard, 'First test images': first}.items()
        if indices
    }
    found = foreground_of(classes)
    measure = 'mIoU' if found is None else f'IoU.{classes[found]}'
    figures = {
        'classes.png': plot_class_iou(iou, classes),
        'curves.png': plot_curves(runs, measure=measure),
        'curves_narrow.png': plot_curves(runs, 2, measure),
    }
    grids = {f'{heading.split()[0].lower()}.png': heading for heading in shown}
    for file, heading in grids.items():
        figures[file] = plot_grid(shown[heading], classes, colours)
    images = {
        name: png_bytes(figure, 100 if name in grids else _DPI) for name, figure in figures.items()
    }
    for name, image in images.items():
        write_atomic(out / name, image)

    title = ' and '.join(run.name for run in runs)
    verdict = foreground_verdict(evaluations, classes) or mean_verdict(iou, classes)
    notes = _notes(runs, iou, classes)
    scores = _score_rows(evaluations, classes)
    header = ['class', *iou, *['difference'] * (len(iou) == 2)]
    rounds = round_tables(runs, iou, classes)
    text = '\n\n'.join(
        [
            f'# {title}',
            verdict,
            *(f'> **Note.** {note}' for note in notes),
            markdown_table(['', *iou], _settings(runs)),
            f'## IoU in % on the test set of {size} images',
            markdown_table(header, scores),
            '![IoU by class](classes.png)',
            *(['## Rounds', *(markdown_table(*table) for table in rounds)] if rounds else ()),
            '## Training\n\n![loss and ramp curves](curves.png)',
            *(
                f'## {title}\n\n![image, truth, predictions]({name})'
                for name, title in grids.items()
            ),
        ]
    )
    write_text(out / 'report.md', text + '\n')
    page = jinja2.Template(_TEMPLATE.read_text(encoding='utf-8'), autoescape=True).render(
        title=title,
        verdict=verdict,
        notes=notes,
        settings=_settings(runs),
        runs=list(iou),
        size=size,
        header=header,
        scores=scores,
        rounds=rounds,
        figures={name: _data_url(image) for name, image in images.items() if name not in grids},
        legend=[*zip(classes, colours), ('ignored', (255, 255, 255))],
        sections={title: _cases(by_run, colours) for title, by_run in shown.items()},
    )
    write_text(out / 'report.html', page)
    return out / 'report.md'


def hardest(evaluations: Sequence[Evaluation], count: int) -> list[int]:
    """Returns indices of the images with the lowest mIoU, averaged over the runs, worst first."""
    mean = np.mean([evaluation.image_miou for evaluation in evaluations], axis=0)
    return np.argsort(mean, kind='stable')[:count].tolist()


def mean_verdict(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> str:
    """Says in a sentence how the runs compare, by IoU `(C,)` in [0, 1].

    For two runs that is the difference in mIoU and the classes that gain and lose most, otherwise
    the mIoU of each run.
    """
    miou = {name: 100 * float(np.nanmean(values)) for name, values in iou.items()}
    if len(iou) != 2:
        return 'mIoU on the test set: ' + ', '.join(f'{n} {v:.1f} %' for n, v in miou.items()) + '.'
    (first, before), (second, after) = miou.items()
    gain = 100 * (iou[second] - iou[first])
    by_gain = [i for i in np.argsort(gain) if not np.isnan(gain[i])]
    worst, best = by_gain[0], by_gain[-1]
    ahead = int((gain[by_gain] > 0).sum())
    points = round(after - before, 1)
    relation = 'ahead of' if points > 0 else 'behind' if points < 0 else 'level with'
    distance = f' by {abs(points)} points' if points else ''
    down, up = (f'{classes[i]} ({signed(gain[i])})' for i in (worst, best))
    extremes = (
        f'the largest change up is {up}, the largest down {down}'
        if gain[worst] < 0 < gain[best]
        else f'the changes lie between {down} and {up}'
    )
    return (
        f'{second} is {relation} {first}{distance}: {after:.1f} against {before:.1f} % mIoU. It is '
        f'better in {ahead} of {len(by_gain)} classes; {extremes}. One run each: another seed '
        'gives another figure.'
    )


def foreground_verdict(evaluations: Mapping[str, Evaluation], classes: Sequence[str]) -> str | None:
    """Says how well the runs find the foreground of two classes; None if there are not two."""
    index = foreground_of(classes)
    if index is None:
        return None
    parts = []
    for name, evaluation in evaluations.items():
        scores = detection_scores(*evaluation.areas[:, index])
        found = ', '.join(f'{key} {value:.1f}' for key, value in scores.items())
        parts.append(f'{name} {100 * np.nan_to_num(evaluation.iou[index]):.1f} ({found})')
    one = ' One run each: another seed gives another figure.' if len(parts) > 1 else ''
    return f'IoU of {classes[index]} in %: {"; ".join(parts)}.{one}'


def iou_rows(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> list[list[str]]:
    """Formats IoU `(C,)` in [0, 1] by class, in %, and the mean in the last row.

    With two runs, a further column is the second minus the first.
    """
    columns = [np.append(values, np.nanmean(values)) * 100 for values in iou.values()]
    return _rows([*classes, 'mean'], columns)


def _score_rows(evaluations: Mapping[str, Evaluation], classes: Sequence[str]) -> list[list[str]]:
    """Returns `iou_rows`; for two classes also F1, precision and recall of the foreground."""
    rows = iou_rows({name: each.iou for name, each in evaluations.items()}, classes)
    index = foreground_of(classes)
    if index is None:
        return rows
    scores = [detection_scores(*each.areas[:, index]) for each in evaluations.values()]
    names = [f'{key} of {classes[index]}' for key in scores[0]]
    more = _rows(names, [np.array(list(each.values())) for each in scores])
    return [rows[index], *more, rows[1 - index], rows[-1]]


def _rows(names: Sequence[str], columns: Sequence[np.ndarray]) -> list[list[str]]:
    cells = [[f'{value:.1f}' for value in column] for column in columns]
    if len(columns) == 2:
        cells.append([signed(value) for value in columns[1] - columns[0]])
    # empty where a class neither occurs nor is predicted
    cells = [['' if 'nan' in cell else cell for cell in column] for column in cells]
    return [list(row) for row in zip(names, *cells)]


def _notes(runs: Sequence[Run], iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> list[str]:
    """Collects what a reader has to know, each note once, with the runs that it is about."""
    found: dict[str, list[str]] = {}
    for run in runs:
        curve = [values['mIoU'] for values in run.scalars if 'mIoU' in values]
        scored = {
            str(name): round(100 * value, 2)
            for name, value in zip(classes, iou[run.name])
            if not np.isnan(value)
        }
        for note in [*findings(curve, scored), *_validation_notes(run)]:
            found.setdefault(note, []).append(run.name)
    return [
        note if len(names) == len(runs) else f'{" and ".join(names)}: {note}'
        for note, names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def _validation_notes(run: Run) -> Iterator[str]:
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
    scale = min(1.0, _WIDEST / rgb.shape[1])
    if scale < 1:
        rgb = cv2.resize(rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
    return _data_url(cv2.imencode('.png', rgb[..., ::-1])[1].tobytes())


def _data_url(png: bytes) -> str:
    return f'data:image/png;base64,{base64.b64encode(png).decode()}'


def _settings(runs: Sequence[Run]) -> list[list[str]]:
    """Lists the settings of the runs that show whether the comparison is fair."""
    rows = {
        'labelled images': [_labelled(run) for run in runs],
        'unlabelled images': [_unlabelled(run) for run in runs],
        'iterations': [run.config.train_cfg.max_iters for run in runs],
        'seed': [run.config.get('randomness', {}).get('seed') for run in runs],
        'median seconds per iteration': [_seconds_per_iteration(run) for run in runs],
    }
    return [[name, *map(str, values)] for name, values in rows.items()]


def _labelled(run: Run) -> int:
    if recorded := labels_of(run):  # more masks may be there by now
        return len(recorded.labeled)
    dataset = run.config.train_dataloader.dataset
    return _length(branch_settings(dataset, 'labeled') or dataset)


def _unlabelled(run: Run) -> int:
    if recorded := labels_of(run):
        return recorded.unlabeled
    dataset = branch_settings(run.config.train_dataloader.dataset, 'unlabeled')
    return _length(dataset) if dataset else 0


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
                f'{run.name}: a different test set than {runs[0].name}; expected '
                'the same test_dataloader.dataset'
            )
