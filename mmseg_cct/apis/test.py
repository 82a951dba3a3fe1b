"""Prepares and runs a test."""

import copy
import os
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import METRICS, DefaultScope
from mmseg.evaluation import CityscapesMetric, IoUMetric

from mmseg_cct.config.load import default_work_dir, protect
from mmseg_cct.config.walk import as_list
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.metrics import MultiDomainIoUMetric
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.components import is_a
from mmseg_cct.utils.output_folder import OutputFolder

from .device import fit_to_device, fit_workers
from .run import Run
from .runner import require_files_kept, require_outputs_outside, run_config

# Metrics that write predictions.
_PNG_WRITERS = (IoUMetric, CityscapesMetric, MultiDomainIoUMetric)


def prepare_test(
    run: Run,
    *,
    work_dir: str | None = None,
    out: str | None = None,
    tta: bool = False,
    options: dict[str, Any] | None = None,
    launcher: str = 'none',
) -> Config:
    """Makes the config of a test run, for `test`.

    Args:
        run: The trained network.
        work_dir: Where to write. The runner dumps its config there, so it is never the training's
            own directory: `test` below that is used instead, and by default.
        out: Folder for the predictions as PNGs of class ids.
        tta: Whether to average over the config's `tta_pipeline`.
        options: Settings that the user has chosen, by dotted key; they stay as they are.
        launcher: What started the processes: `none`, `pytorch` or `slurm`.

    Returns:
        The config.

    Raises:
        UserError: If a file is missing or would be overwritten, a setting is invalid, or the config
            lacks what an option needs.
    """
    config = copy.deepcopy(run.config)
    protect(config, options or {})
    needed = ('model', 'test_dataloader', 'test_evaluator', 'test_cfg')
    for key in (*needed, 'tta_model', 'tta_pipeline') if tta else needed:
        if config.get(key) is None:
            raise UserError(config.filename, f'no {key}', 'one for this test')
    config.load_from, config.resume = run.checkpoint, False
    config.work_dir = _work_dir(run, work_dir)
    require_outputs_outside(config)
    require_files_kept(config)
    if out is not None:
        OutputFolder(out, 'test.json', data_folders(config)).claim()
    if tta:
        config.test_dataloader.dataset.pipeline = config.tta_pipeline
        config.tta_model.module = config.model
        config.model = config.tta_model
    if out is not None:
        with DefaultScope.overwrite_default_scope(config.get('default_scope')):
            metrics = as_list(config.test_evaluator)
            writers = [one for one in metrics if is_a(one, METRICS, *_PNG_WRITERS)]
            for evaluator in writers:
                evaluator.output_dir = out
                if is_a(evaluator, METRICS, CityscapesMetric):  # it removes them by default
                    evaluator.keep_results = True
        if not writers:
            expected = ' or '.join(kind.__name__ for kind in _PNG_WRITERS)
            raise UserError(config.filename, f'--out needs a test_evaluator of type {expected}')
    fit_workers(config, options or {}, trains=False)
    return fit_to_device(config, launcher)


def test(config: Config) -> dict[str, float]:
    """Tests with a config of `prepare_test`; returns the metrics by name."""
    folders = {one.get('output_dir') for one in as_list(config.test_evaluator)}
    return run_config(config, 'test', filter(None, folders))


def _work_dir(run: Run, chosen: str | None) -> str:
    """Returns the chosen directory, or `test` below the training's, which is never used itself."""
    config = run.config
    if run.folder.resolve() == Path(config.filename).resolve().parent:  # opened as a folder
        trained_in = str(run.folder)
    else:
        trained_in = config.get('work_dir') or default_work_dir(config)
    work_dir = chosen or os.path.join(trained_in, 'test')
    is_training = os.path.isfile(os.path.join(work_dir, 'last_checkpoint'))
    return os.path.join(work_dir, 'test') if is_training else work_dir
