"""Studies: the config that their runs have in common, and runs over methods, labels and seeds.

The folder of a run is `<study>/<method>/<labels>/seed<seed>`; results are read only from there.
"""

import copy
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config, ConfigDict
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS

from mmseg_cct.config.compose import read_method, training_sets
from mmseg_cct.config.load import load_config, read_config
from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.config.walk import as_list, changed_settings, get_by_key, leaves
from mmseg_cct.datasets.leaves import data_folders, image_paths
from mmseg_cct.datasets.semi_supervised import SemiSegDataset, branch_settings
from mmseg_cct.engine.labels_record import below_folder, read_labels
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.preflight.settings import fetch_pretrained_weights, training_problems
from mmseg_cct.utils.files import require_outside

from .execution import StudyRun, find_runs

# Merged into a config, as a method is.
Overlay = Mapping[str, Any]
# Sets the labelled images of a config for a seed, in place.
Labels = Callable[[Config, int], None]
# Settings that a study changes or needs, and what is expected there.
_LABELED = 'train_dataloader.dataset.labeled'
_EXPECTED = {
    _LABELED: 'a SemiSegDataset, whose labelled images a study chooses',
    'train_cfg.max_iters': 'a training that counts iterations',
    'test_dataloader': 'images to test on',
    'default_hooks.checkpoint': 'a CheckpointHook, whose last checkpoint a study tests',
}


def study_config(base: str, options: dict[str, Any]) -> Config:
    """Loads the config of a study, and checks it before any run is prepared."""
    config = load_config(base, options)
    has_labels = all(part.get('labeled') is not None for part in training_sets(config))
    raise_problems(
        Problem(base, f'no {key}', expected)
        for key, expected in _EXPECTED.items()
        if (not has_labels if key == _LABELED else get_by_key(config, key) is None)
    )
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        raise_problems(training_problems(config))
    if not any(
        'mIoU' in evaluator.get('iou_metrics', ['mIoU'])
        and not evaluator.get('prefix')
        and not evaluator.get('format_only')
        for evaluator in as_list(config.test_evaluator)
    ):
        problem = 'test_evaluator: gives no mIoU, which a study collects'
        expected = "an IoUMetric with 'mIoU' among its iou_metrics, without prefix and format_only"
        raise UserError(base, problem, expected)
    return config


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
    # the plain config has all parts, also those that a method removes
    config = study_config(base, {**options, 'method': PLAIN})
    require_outside(out, data_folders(config), '--out')
    fetch_pretrained_weights(config.model)  # once, before many processes need them
    configs = {}  # complete before the first is written: a method may reject the config
    for name, method in methods.items():
        # An option may change a part that the method removes, as the baseline the decoders.
        overlay = read_method(method) if isinstance(method, str) else method or {}
        removed = [f'{part}.' for part, value in leaves(overlay) if value is None]
        kept = {k: v for k, v in options.items() if not k.startswith(tuple(removed))}
        configs[name] = study_config(base, kept if method is None else {**kept, 'method': method})
        hook = configs[name].default_hooks.checkpoint
        hook.update(max_keep_ckpts=1, save_best=None)  # only the last one is tested
        for key in ('save_last', 'out_dir', 'filename_tmpl'):  # saved in the work directory
            hook.pop(key, None)
    planned = {}
    for seed in dict.fromkeys(seeds):
        for labels_name, set_labels in labels.items():
            for method, config in configs.items():
                config = copy.deepcopy(config)
                set_labels(config, seed)
                config.randomness = dict(config.get('randomness') or {}, seed=seed)
                iterations = config.train_cfg.max_iters
                planned[StudyRun(out, method, labels_name, seed, iterations)] = config
    _require_same_labels(out)
    _write_configs(planned)
    return list(planned)


def _require_same_labels(out: Path) -> None:
    """Rejects a study whose trainings began with other labelled images than there are now."""
    for run in find_runs(out):
        recorded = read_labels(run.folder / 'train')
        if recorded is None or not run.config.is_file():
            continue
        config = read_config(run.config)
        try:
            with DefaultScope.overwrite_default_scope(config.get('default_scope') or 'mmseg'):
                settings = branch_settings(config.train_dataloader.dataset, 'labeled')
                labeled = sorted(image_paths(SemiSegDataset(settings).labeled))
        except (UserError, OSError):
            continue  # the data are elsewhere, as for a machine that only submits jobs
        if below_folder(labeled) != below_folder(recorded.labeled):
            problem = f'{len(labeled)} images are labelled, {len(recorded.labeled)} were before'
            expected = 'another --out, which compares runs of the same images'
            raise UserError(run.folder, problem, expected)


def _write_configs(planned: Mapping[StudyRun, Config]) -> None:
    """Writes the configs of runs, or checks them against those that exist.

    All are checked before the first is written: configs left by a rejected study would differ from
    those of the corrected one.
    """
    new = [run for run in planned if not run.config.is_file()]
    for run in planned.keys() - set(new):
        written = read_config(run.config).to_dict()
        if changed := changed_settings(written, planned[run].to_dict()):
            key, before, now = changed[0]
            problem = f'{key} is {before!r} there, {now!r} here'
            raise UserError(run.config, f'{problem}; delete the folder, or name another')
    for run in new:
        run.folder.mkdir(parents=True, exist_ok=True)
        # a config that a kill cut short would be another study's
        unfinished = run.config.with_suffix('.tmp.py')
        planned[run].dump(unfinished)
        unfinished.replace(run.config)


def lists_of(
    base: str,
    options: dict[str, Any],
    numbers: Sequence[int],
    folder: str | None = None,
    seeds: Sequence[int] = (0,),
) -> dict[str, Labels]:
    """Returns setters of these numbers of labelled images, by number.

    Without `numbers`, the config keeps its own images. The lists of a number are in `folder`, by
    default each set's `split_dir`; its name may contain `{seed}` and, for several domains, must
    contain `{domain}`. Without any lists, each seed draws nested subsets of the labelled images;
    those that lose their labels are not used.

    Raises:
        UserError: If a list is missing, or a number is larger than the labelled set.
    """
    if not numbers:
        if folder is not None:
            raise UserError(f'--lists {folder} needs -n, the numbers of labels')
        return {'config': lambda config, seed: None}
    config = study_config(base, options)
    sets = _sets_by_domain(config)
    folders = {domain: folder or dataset.get('split_dir') for domain, dataset in sets.items()}
    if not any(folders.values()) and len(sets) == 1:
        with DefaultScope.overwrite_default_scope(config.get('default_scope') or 'mmseg'):
            labeled = branch_settings(config.train_dataloader.dataset, 'labeled')
            total = len(DATASETS.build(copy.deepcopy(labeled)))
        if max(numbers) > total:
            raise UserError(f'-n {max(numbers)}', f'{base} has {total} labelled images')
        return {str(n): functools.partial(_draw_labels, n, total) for n in numbers}
    for domain, folder_of_domain in folders.items():
        if folder_of_domain is None:
            raise UserError(base, f'no lists of labelled images {domain}'.strip(), '--lists DIR')
    if len({*folders.values()}) < len(folders) and '{domain}' not in str(folder):
        raise UserError(f'--lists {folder}', 'one folder for all domains', "'{domain}' in it")

    # all of them now: the list of the last seed may be read tomorrow
    branches = 'labeled', 'unlabeled'
    for n, branch, domain, seed in itertools.product(numbers, branches, folders, seeds):
        file = Path(_folder_of(folders[domain], domain, seed), f'{n}_{branch}.txt')
        if not file.is_file():
            expected = f'the {branch} images of n={n} (mmseg-cct make-splits makes them)'
            raise UserError(file, 'no such list', expected)
    return {str(n): functools.partial(_take_lists, n, folders) for n in numbers}


def _take_lists(number: int, folders: Mapping[str, str], config: Config, seed: int) -> None:
    for domain, dataset in _sets_by_domain(config).items():
        folder = _folder_of(folders[domain], domain, seed)
        dataset.update(split_dir=folder, num_labeled=number)


def _folder_of(pattern: str, domain: str, seed: int) -> str:
    return pattern.replace('{seed}', str(seed)).replace('{domain}', domain)


def _draw_labels(number: int, total: int, config: Config, seed: int) -> None:
    """Draws some of a config's labelled images, which are among those of a larger number."""
    # NumPy guarantees the stream of RandomState; `draw_split` relies on it, too.
    order = np.random.RandomState(seed).permutation(total)
    config.train_dataloader.dataset.labeled.indices = sorted(order[:number].tolist())


def _sets_by_domain(config: Config) -> dict[str, ConfigDict]:
    """Returns the training sets of a config by domain; the name of a single one is empty."""
    return dict(zip(config.model.get('domains') or [''], training_sets(config), strict=True))
