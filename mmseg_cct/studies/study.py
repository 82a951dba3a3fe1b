"""Studies: the config that their runs have in common, and runs over methods, labels and seeds.

The folder of a run is `<study>/<method>/<labels>/seed<seed>`; results are read only from there.
"""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.hooks import EarlyStoppingHook
from mmengine.registry import HOOKS, DefaultScope
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

from mmseg_cct.config.compose import find_bank, read_method, training_sets
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.config.walk import at, leaves, listed
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.preflight.components import is_a
from mmseg_cct.preflight.failures import require_buildable
from mmseg_cct.preflight.labeled_record import Labels as Labeled
from mmseg_cct.preflight.labeled_record import read_labels
from mmseg_cct.preflight.pretrained import fetch_pretrained_weights
from mmseg_cct.preflight.values import hooks_of, training_problems
from mmseg_cct.utils.files import require_outside

from .execution import StudyRun, prepare_runs
from .results import title_of_labels

# Merged into a config, as a method is.
Overlay = Mapping[str, Any]
# Sets the labelled images of a config for a seed, in place.
Labels = Callable[[Config, int], None]
# Settings that a study changes or needs, and what is expected there.
_LABELED = 'train_dataloader.dataset.labeled'
_EXPECTED = {
    _LABELED: 'a SemiSegDataset, whose labelled images a study chooses',
    'train_cfg.max_iters': 'a training that counts iterations',
    'optim_wrapper': 'a config for training',
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
        if (not has_labels if key == _LABELED else at(config, key) is None)
    )
    for key, hook in hooks_of(config):
        if is_a(hook, HOOKS, EarlyStoppingHook):
            found = f'{hook.type} ends runs at different lengths'
            raise UserError(f'{base}: {key}', found, 'none: a study compares equal ones')
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        raise_problems(training_problems(config))
        if not any(map(_may_give_miou, listed(config.test_evaluator))):
            raise UserError(
                base,
                'test_evaluator: gives no mIoU, which a study collects',
                "an IoUMetric with 'mIoU' among its iou_metrics, without prefix and format_only",
            )
    return config


def require_one_domain(config: Config, base: str) -> None:
    """Rejects a config of several domains, for studies that choose images of one."""
    if at(config, _LABELED) is None:
        found = f'no {_LABELED}, but several domains'
        raise UserError(base, found, 'one data set; tools/ablation.py takes several')


def keep_last_checkpoint(config: Config) -> None:
    """Keeps only the last checkpoint, where a study looks for it."""
    config.default_hooks.checkpoint.update(max_keep_ckpts=1, save_best=None)
    for key in ('save_last', 'out_dir', 'filename_tmpl'):  # by default it is saved, in work_dir
        config.default_hooks.checkpoint.pop(key, None)


def _may_give_miou(settings: Mapping[str, Any]) -> bool:
    kind = METRICS.get(settings['type']) if isinstance(settings['type'], str) else settings['type']
    if not issubclass(kind, IoUMetric):
        return not kind.__module__.startswith('mmseg.')  # a custom metric may
    named = 'mIoU' in settings.get('iou_metrics', ['mIoU'])
    return named and not settings.get('prefix') and not settings.get('format_only')


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


def changed_data(out: Path) -> str:
    """Names data that changed between two trainings of a study with the same labelled images."""
    first: dict[tuple[str, ...], Labeled] = {}
    for folder in sorted(out.glob('*/*/seed*/train')):
        if (record := read_labels(folder)) is not None:
            earlier = first.setdefault((*record.labeled, str(bool(record.digest))), record)
            if changed := earlier.changes(record):
                return f'{folder}: {changed} changed since an earlier run'
    return ''
