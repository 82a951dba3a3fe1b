"""What happens to a config between its file and the runner: a list of steps.

A step takes the config, which it may change, and what the command line asks for; it may raise a
`UserError`. A new one is a function here and its name in a list. The config that a run leaves in
its work directory says under `prepared` what each step changed.
"""

import copy
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import METRICS, DefaultScope
from mmseg.evaluation import CityscapesMetric, IoUMetric

from mmseg_cct.config.compose import find_bank
from mmseg_cct.config.load import default_work_dir, with_protections
from mmseg_cct.config.shipped import free_round
from mmseg_cct.config.walk import as_list, changed_settings, get_by_key
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.checkpoints import find_resumable, newest_checkpoint, read_checkpoint
from mmseg_cct.engine.hooks.resume_hook import settings_as_text
from mmseg_cct.engine.labels_record import LABELS
from mmseg_cct.engine.metrics import MultiDomainIoUMetric
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import is_a
from mmseg_cct.utils.log import say
from mmseg_cct.utils.output_folder import OutputFolder

from .device import HALF, compile_encoders, fit_to_device, fit_workers, use_half_precision
from .runner import require_files_kept, require_outputs_outside

__all__ = ['Request']

# What hooks write into the work directory besides checkpoints.
_WRITTEN = ('nonfinite_iter_*', LABELS)
# Options that a resume takes over, and the settings that they change.
_KEPT = dict(
    weak_masks='train_dataloader.dataset.weak_masks',
    amp='optim_wrapper.type',
    compile='default_hooks.compile_encoder.type',
)
# Metrics that write predictions.
_PNG_WRITERS = (IoUMetric, CityscapesMetric, MultiDomainIoUMetric)


@dataclass(frozen=True)
class Request:
    """What the command line of a training or a test asks for.

    Attributes:
        work_dir: Where to write; by default the config's own `work_dir` or `work_dirs/<config>`, of
            a test `test` in the training's.
        options: Settings of the config that the user has chosen, by dotted key, with `method` and
            `labels` as in `load_config`.
        launcher: What started the processes: `none`, `pytorch` or `slurm`.
        resume: `'auto'` for the latest checkpoint in the work directory, or a checkpoint file.
        amp: Whether to train in mixed precision.
        compile: Whether to compile the encoders (`CompileEncoderHook`).
        weak_masks: Folder of masks of unknown quality for the unlabelled images.
        checkpoint: The weights to test.
        out: Folder for the predictions of a test as PNGs of class ids.
        tta: Whether a test averages over the config's `tta_pipeline`.
    """

    work_dir: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    launcher: str = 'none'
    resume: str | None = None
    amp: bool = False
    compile: bool = False
    weak_masks: str | None = None
    checkpoint: str | None = None
    out: str | None = None
    tta: bool = False


Step = Callable[[Config, Request], None]


def prepare(config: Config, request: Request, steps: Sequence[Step]) -> Config:
    """Takes a copy of a config through steps; `prepared` in it lists what each of them changed."""
    changes = {}
    for step in steps:
        before, config = config, copy.deepcopy(config)
        step(config, request)
        if changed := changed_settings(before, config, 'unset'):
            changes[step.__name__] = [f'{key}: {old} -> {new}' for key, old, new in changed]
    if changes:
        config.prepared = changes
    return config


def protections(config: Config, request: Request) -> None:
    """Adds the hooks that protect a run to a config without, as one of MMSegmentation's own."""
    config.default_hooks = with_protections(config, request.options).default_hooks


def weak_masks(config: Config, request: Request) -> None:
    """`--weak-masks` lets auxiliary decoders, or self-training, learn from masks."""
    if request.weak_masks is None:
        return
    bank = find_bank(config)
    if config.model.type == 'SelfTrainingSegmentor':
        config.train_dataloader.dataset.weak_masks = request.weak_masks
        return
    if bank is None or config.model.get('domains'):
        expected = 'cct-strong, self-training or a method with auxiliary decoders, on one domain'
        raise UserError('--weak-masks', f'not for {config.filename}', expected)
    bank.loss_weak = bank.get('loss_weak') or dict(type='WeakCrossEntropy')
    config.train_dataloader.dataset.weak_masks = request.weak_masks
    ramp = dict(type='RampUpHook', attribute='auxiliary_head.loss_weak.loss_weight')
    config.default_hooks.setdefault('weak_ramp_up', ramp)
    config.default_hooks.weak_masks = dict(type='WeakMasksHook')


def work_dir(config: Config, request: Request) -> None:
    """Says where to write: never into folders of the data."""
    config.work_dir = request.work_dir or config.get('work_dir') or default_work_dir(config)
    require_outputs_outside(config)


def mixed_precision(config: Config, request: Request) -> None:
    """`--amp` computes in bfloat16 where the device has it, else in float16: in less time."""
    if request.amp:
        use_half_precision(config)


def compiled_encoders(config: Config, request: Request) -> None:
    """`--compile` compiles backbone and neck: faster steps where a GPU waits for its host."""
    if request.compile:
        compile_encoders(config)


def resumed_checkpoint(config: Config, request: Request) -> None:
    """Goes on from a checkpoint if asked to; a training in the work directory is never replaced."""
    resume = request.resume
    if resume is None and config.get('resume'):  # mmengine's `resume` skips our checks
        resume = config.get('load_from') or 'auto'
    newest = newest_checkpoint(config.work_dir, _template(config))
    if newest is None:
        require_files_kept(config, _WRITTEN)
    elif resume is None:
        free = shlex.quote(str(free_round(Path(config.work_dir))))
        problem = f'holds a training up to {os.path.basename(newest)}'
        remedy = f'pass --resume to go on, or --work-dir {free} for a next round of labels'
        raise UserError(f'--work-dir {config.work_dir}', f'{problem}; {remedy}')
    if resume is None:
        return
    if resume == 'auto' and not os.path.isdir(config.work_dir):
        raise UserError(f'--work-dir {config.work_dir}', 'no such folder, so none to resume')
    if resume == 'auto':
        resume = find_resumable(config.work_dir, _template(config))
    config.load_from, config.resume = resume, True


def resumed_options(config: Config, request: Request) -> None:
    """Takes seed and options of the first start from the checkpoint; others are an error.

    mmengine takes the seed, too, but after the samplers have drawn.
    """
    if not config.get('resume') or config.load_from is None:
        return
    meta = read_checkpoint(config.load_from, training=True)['meta']
    if get_by_key(config, 'randomness.seed') is None:
        config.randomness = {**(config.get('randomness') or {}), 'seed': meta.get('seed')}
    if 'settings' not in meta:  # of an older version, or of MMSeg's tools
        return
    first, now = _options_in(meta['settings']), _options_in(settings_as_text(config))
    for name, step in zip(_KEPT, (weak_masks, mixed_precision, compiled_encoders)):
        was, asked = first[name], now[name]
        if any(_KEPT[name].startswith(key) for key in request.options):
            continue  # whoever names the setting itself means it
        if was and not asked:
            step(config, Request(**{name: was}))
            say(f'--resume: with {_as_option(name, was)}, as it was started')
        elif asked != was and not (was and not os.path.exists(was)):  # the masks may have moved
            start = f'with {_as_option(name, was)}' if was else 'without'
            problem = f'{config.load_from} was trained {start}'
            raise UserError(_as_option(name, asked), problem, 'the same, or another --work-dir')


def _as_option(name: str, value: Any) -> str:
    return f'--{name.replace("_", "-")}{"" if value is True else f" {value}"}'


def _options_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Finds by settings in dotted keys what options have made of them."""
    weak, wrapper, hook = map(settings.get, _KEPT.values())
    return dict(weak_masks=weak, amp=wrapper in HALF, compile=hook is not None)


def unnamed_visualizer(config: Config, request: Request) -> None:
    """Drops a name under which a process's second run would write into the files of its first."""
    (config.get('visualizer') or {}).pop('name', None)


def tested_checkpoint(config: Config, request: Request) -> None:
    """Loads the weights to test; the runner's own dump of a config replaces no other file."""
    config.load_from, config.resume = request.checkpoint, False
    require_files_kept(config)


def averaged_views(config: Config, request: Request) -> None:
    """`--tta` averages the probabilities over the scales and flips of the `tta_pipeline`."""
    if not request.tta:
        return
    config.test_dataloader.dataset.pipeline = config.tta_pipeline
    config.model = {**config.tta_model, 'module': config.model}


def written_predictions(config: Config, request: Request) -> None:
    """`--out` makes the metrics write what they compare, into a folder of this test alone."""
    if request.out is None:
        return
    OutputFolder(request.out, 'test.json', data_folders(config)).claim()
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        metrics = as_list(config.test_evaluator)
        writers = [metric for metric in metrics if is_a(metric, METRICS, *_PNG_WRITERS)]
        for metric in writers:
            metric.output_dir = request.out
            if is_a(metric, METRICS, CityscapesMetric):  # it removes them by default
                metric.keep_results = True
    if not writers:
        expected = ' or '.join(metric.__name__ for metric in _PNG_WRITERS)
        raise UserError(config.filename, f'--out needs a test_evaluator of type {expected}')


def workers(config: Config, request: Request) -> None:
    """Starts no more loading workers than cores, unless the user or the images depend on them."""
    fit_workers(config, request.options)


def progress_bar(config: Config, request: Request) -> None:
    """Shows a bar on a terminal."""
    if sys.stderr.isatty():
        config.default_hooks.setdefault('progress_bar', dict(type='ProgressBarHook'))


def device(config: Config, request: Request) -> None:
    """Fits precision, norms, pinned memory and DDP, written for GPUs, to device and launcher."""
    fit_to_device(config, request.launcher)


# What a config needs wherever it is launched: `mmseg-cct config` writes it for MMSeg's own tools.
LAUNCHER_STEPS: tuple[Step, ...] = (protections,)
TRAINING_STEPS: tuple[Step, ...] = (
    *LAUNCHER_STEPS,
    weak_masks,
    work_dir,
    mixed_precision,
    compiled_encoders,
    resumed_checkpoint,
    resumed_options,
    unnamed_visualizer,
    workers,
    progress_bar,
    device,
)
TEST_STEPS: tuple[Step, ...] = (
    *LAUNCHER_STEPS,
    work_dir,
    tested_checkpoint,
    averaged_views,
    written_predictions,
    workers,
    device,
)


def require_keys(config: Config, keys: Sequence[str], expected: str) -> None:
    """Checks that a config has what its run cannot do without."""
    for key in keys:
        if config.get(key) is None:
            raise UserError(config.filename, f'no {key}', expected)


def _template(config: Config) -> str | None:
    return get_by_key(config, 'default_hooks.checkpoint.filename_tmpl')
