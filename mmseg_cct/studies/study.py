"""Studies: runs over methods, numbers of labels and seeds, and tables of their results.

The folder of a run is `<study>/<method>/<labels>/seed<seed>`; results are read only from there.
"""

import copy
import csv
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from mmengine.config import Config, ConfigDict
from scipy.stats import t as student

from mmseg_cct.config.compose import find_bank, read_method, training_sets
from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.config.walk import leaves
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.failures import require_buildable
from mmseg_cct.preflight.labeled_record import Labels as Labeled
from mmseg_cct.preflight.labeled_record import read_labels
from mmseg_cct.preflight.pretrained import fetch_pretrained_weights
from mmseg_cct.utils.files import require_outside, write_atomic
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import counted, signed

from .execution import StudyRun, prepare_runs, read_metrics
from .holm import verdicts
from .study_config import keep_last_checkpoint, study_config

# Merged into a config, as a method is.
Overlay = Mapping[str, Any]
# Sets the labelled images of a config for a seed, in place.
Labels = Callable[[Config, int], None]


class Result(NamedTuple):
    """mIoU of one run on the test set, in %; of several domains the average.

    `labels` is the number of labelled images, or 'config' for the config's own.
    """

    method: str
    labels: str
    seed: int
    miou: float


def prepare_study(
    out: Path,
    base: str,
    methods: Mapping[str, str | Overlay | None],
    labels: Mapping[str, Labels],
    seeds: Sequence[int],
    options: Mapping[str, Any],
) -> list[StudyRun]:
    """Writes the configs of all runs, seed by seed, so that a stopped study has complete seeds.

    `base` is the path of the config, and `options` are settings to override. `methods` are names or
    overlays by the names of the runs; None trains the config as it is.

    Raises:
        UserError: If a study cannot train the config, a method does not fit it, or a folder holds a
            run of another config.
    """
    config = study_config(base, {**options, 'method': PLAIN})
    require_outside(out, data_folders(config), '--out')
    fetch_pretrained_weights(config.model)  # once, before many processes need them
    configs = {}  # complete before the first is written: a method may reject the config
    for name, method in methods.items():
        overlay = read_method(method) if isinstance(method, str) else method or {}
        _require_decoders(config, overlay, name)
        kept = {key: value for key, value in options.items() if not _is_removed(key, overlay)}
        configs[name] = study_config(base, kept if method is None else {**kept, 'method': method})
        keep_last_checkpoint(configs[name])  # only this one is tested
    planned = []
    for seed in dict.fromkeys(seeds):
        for labels_name, set_labels in labels.items():
            for method, config in configs.items():
                run_config = copy.deepcopy(config)
                set_labels(run_config, seed)
                run_config.randomness = dict(run_config.get('randomness') or {}, seed=seed)
                folder = out / method / labels_name / f'seed{seed}'
                number = title_of_labels(labels_name) or "the config's labels"
                name = f'{method}, {number}, seed {seed}'
                planned.append((name, folder, run_config))
    # before any config is written: the last of them may train tomorrow
    for run_config in {folder.parts[-3]: each for _, folder, each in reversed(planned)}.values():
        require_buildable(run_config)
    return prepare_runs(planned)


def _is_removed(key: str, overlay: Overlay) -> bool:
    """Whether an option changes a part that a method removes, as the baseline the decoders."""
    return any(value is None and key.startswith(f'{part}.') for part, value in leaves(overlay))


def _require_decoders(config: Config, overlay: Overlay, method: str) -> None:
    """Rejects a method that changes a perturbation without decoders: it would repeat `cct`."""
    changes = (overlay.get('model') or {}).get('auxiliary_head') or {}
    perturbations = (find_bank(config) or {}).get('perturbations') or {}
    for name, change in (changes.get('perturbations') or {}).items():
        number = (perturbations.get(name) or {}).get('num_decoders')
        if change and 'num_decoders' not in change and number == 0:
            raise UserError(
                config.filename,
                f'model.auxiliary_head.perturbations.{name} has no decoders, so that {method} '
                'would repeat cct',
                'num_decoders from 1',
            )


def lists_of(
    base: str,
    options: dict[str, Any],
    numbers: Sequence[int],
    folder: str | None = None,
    seeds: Sequence[int] = (0,),
) -> dict[str, Labels]:
    """Finds the lists with these numbers of labelled images, and returns setters of them.

    Without `numbers`, the config keeps its own lists. The name of their `folder`, by default each
    set's `split_dir`, may contain `{seed}` and, for several domains, must contain `{domain}`.

    Raises:
        UserError: If a list is missing.
    """
    if not numbers:
        if folder is not None:
            raise UserError(f'--lists {folder}', 'without -n', 'the numbers of labels too')
        return {'config': lambda config, seed: None}
    folders = {}
    for domain, dataset in _sets_by_domain(study_config(base, options)).items():
        folders[domain] = folder or dataset.get('split_dir')
        if not folders[domain]:
            raise UserError(
                base,
                'train_dataloader.dataset has no split_dir',
                'one, or the folder of the lists (tools/make_splits.py makes them)',
            )
    if len({*folders.values()}) < len(folders) and '{domain}' not in str(folder):
        raise UserError(f'--lists {folder}', 'one folder for several domains', "'{domain}' in it")

    def folder_of(domain: str, seed: int) -> str:
        return folders[domain].replace('{seed}', str(seed)).replace('{domain}', domain)

    def use(number: int) -> Labels:
        for branch, domain, seed in itertools.product(('labeled', 'unlabeled'), folders, seeds):
            file = Path(folder_of(domain, seed), f'{number}_{branch}.txt')
            if not file.is_file():
                expected = f'the {branch} images of n={number} (tools/make_splits.py makes them)'
                raise UserError(file, 'no such list', expected)

        def set_labels(config: Config, seed: int) -> None:
            for domain, dataset in _sets_by_domain(config).items():
                dataset.update(split_dir=folder_of(domain, seed), num_labeled=number)

        return set_labels

    return {str(number): use(number) for number in numbers}


def _sets_by_domain(config: Config) -> dict[str, ConfigDict]:
    """Returns the training sets of a config by domain; the name of a single one is empty."""
    return dict(zip(config.model.get('domains') or [''], training_sets(config), strict=True))


def collect(out: Path) -> list[Result]:
    """Reads the results of all finished runs, sorted by method, number of labels and seed."""
    results = []
    for folder, run, metrics in _finished(out):
        if 'mIoU' not in metrics:
            raise UserError(folder, f'its test gave {", ".join(metrics)}', 'mIoU')
        if not math.isfinite(metrics['mIoU']):
            expected = 'a number, of a test set with labelled pixels'
            raise UserError(folder, f'its test gave mIoU {metrics["mIoU"]}', expected)
        results.append(Result(*run, metrics['mIoU']))
    return sorted(
        results, key=lambda result: (result.method, *label_order(result.labels), result.seed)
    )


def collect_domains(out: Path) -> dict[str, list[Result]]:
    """Reads the results of each domain; empty for a study of one data set."""
    results: dict[str, list[Result]] = {}
    for _, run, metrics in _finished(out):
        for key, value in metrics.items():
            domain, _, metric = key.rpartition('/')
            if domain and metric == 'mIoU':
                results.setdefault(domain, []).append(Result(*run, value))
    return results


def _finished(out: Path) -> Iterator[tuple[Path, tuple[str, str, int], dict[str, float]]]:
    """Yields the folder, (method, labels, seed) and metrics of each finished run."""
    for folder in out.glob('*/*/seed*'):
        seed = re.fullmatch(r'seed(\d+)', folder.name)
        if seed is not None and (metrics := read_metrics(folder)) is not None:
            method, labels = folder.parts[-3:-1]
            yield folder, (method, labels, int(seed[1])), metrics


def changed_data(out: Path) -> str:
    """Names data that changed between two trainings of a study with the same labelled images."""
    first: dict[tuple[str, ...], Labeled] = {}
    for folder in sorted(out.glob('*/*/seed*/train')):
        if (record := read_labels(folder)) is not None:
            earlier = first.setdefault((*record.labeled, str(bool(record.digest))), record)
            if changed := earlier.changes(record):
                return f'{folder}: {changed} changed since an earlier run'
    return ''


def label_order(labels: str) -> tuple[int, str]:
    """Sort key of labelled sets: 'config', then ascending numbers."""
    return (int(labels) if labels.isdigit() else -1, labels)


def label_sets(results: Iterable[Result]) -> list[str]:
    """Lists the labelled sets of results in their order."""
    return sorted({result.labels for result in results}, key=label_order)


def title_of_labels(labels: str) -> str:
    """Titles a panel by its number of labelled images; the config's own set needs no title."""
    return counted(int(labels), 'labelled image') if labels.isdigit() else ''


def select(results: Iterable[Result], method: str, labels: str) -> list[float]:
    """Selects the mIoU of every seed for one method and labelled set."""
    return [r.miou for r in results if (r.method, r.labels) == (method, labels)]


def write_csv(results: Sequence[Result], file: Path) -> None:
    """Writes a CSV file with a line per run."""
    stream = io.StringIO(newline='')
    writer = csv.writer(stream)
    writer.writerow(Result._fields)
    writer.writerows(results)
    write_atomic(file, stream.getvalue().encode())


def results_table(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """Lists mean ± standard deviation over seeds, a row per method and a column per set.

    A cell with fewer seeds than the study says how many. Methods without a result are left out.
    """
    columns = label_sets(results)
    most = len({result.seed for result in results})
    titles = [f'n={column}' if column.isdigit() else 'mIoU' for column in columns]
    rows = []
    for method in methods:
        cells = [_cell(select(results, method, column), most) for column in columns]
        if any(cells):
            rows.append([method, *cells])
    return Table(['method', *titles], rows)


def gains_table(results: Sequence[Result], methods: Sequence[str], reference: str) -> Table | None:
    """Lists what methods gain over a reference, from the pairs of runs with the same seed.

    A row has the labelled set, the mean gain in mIoU, half the width of its 95 % interval by
    Student's t, the gains by seed, and a verdict in words, corrected for the number of rows.
    Returns None if there are no pairs.
    """
    before = {(r.labels, r.seed): r.miou for r in results if r.method == reference}
    pairs: dict[tuple[str, str], list[float]] = {}
    for labels in label_sets(results):
        for method in methods:
            own = {r.seed: r.miou for r in results if (r.method, r.labels) == (method, labels)}
            gains = [own[n] - before[labels, n] for n in sorted(own) if (labels, n) in before]
            if gains and method != reference:
                pairs[method, labels] = gains
    rows = []
    for (place, gains), verdict in zip(pairs.items(), verdicts(list(pairs.values()))):
        half = f'±{interval(gains):.1f}' if len(gains) > 1 else ''
        rows.append([*place, signed(mean(gains)), half, ' '.join(map(signed, gains)), verdict])
    header = ['method', 'labels', 'mean gain', '95 %', 'by seed', 'verdict by Holm']
    return Table(header, rows, 'lrrrll') if rows else None


def interval(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean by Student's t; infinity for one value."""
    if len(values) < 2:
        return math.inf
    return float(student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)))


def _cell(values: Sequence[float], most: int) -> str:
    if not values:
        return ''
    text = f'{mean(values):.1f}'
    if len(values) > 1:
        text += f' ± {stdev(values):.1f}'
    if len(values) < most:
        text += f' ({counted(len(values), "seed")})'
    return text
