"""Prepares and runs a test."""

import os
from dataclasses import replace
from pathlib import Path

from mmengine.config import Config

from mmseg_cct.config.load import default_work_dir
from mmseg_cct.config.walk import as_list

from .prepare import TEST_STEPS, Request, prepare, require_keys
from .run import Run
from .runner import run_config

__all__ = ['prepare_test', 'test']


def prepare_test(run: Run, request: Request | None = None) -> Config:
    """Makes the config of a test run, for `test`.

    Args:
        run: The trained network.
        request: What the test is asked for, by default nothing but its scores. The runner dumps its
            config in the work directory, so that is never the training's own: `test` below it is
            used instead, and by default. The options are those that `run` was opened with.

    Returns:
        The config.

    Raises:
        UserError: If a file is missing or would be overwritten, a setting is invalid, or the config
            lacks what an option needs.
    """
    request = request or Request()
    needed = ('model', 'test_dataloader', 'test_evaluator', 'test_cfg')
    views = ('tta_model', 'tta_pipeline') if request.tta else ()
    require_keys(run.config, (*needed, *views), 'one for this test')
    work_dir = _work_dir(run, request.work_dir)
    request = replace(request, work_dir=work_dir, checkpoint=run.checkpoint)
    return prepare(run.config, request, TEST_STEPS)


def test(config: Config) -> dict[str, float]:
    """Tests with a config of `prepare_test`; returns the metrics by name."""
    folders = {metric.get('output_dir') for metric in as_list(config.test_evaluator)}
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
