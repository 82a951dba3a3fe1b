"""The demo's network gains from unlabelled images: what everything else is for."""

import json

import pytest
import world

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import prepare_training, train

SHORT = {
    'train_cfg.max_iters': 300,
    'train_cfg.val_interval': 300,
    'param_scheduler.end': 300,
    'default_hooks.checkpoint.interval': 300,
    'train_dataloader.batch_size': 4,
}


@pytest.mark.slow
def test_unlabelled_scenes_bring_points_of_miou(tmp_path, project_root):
    """With seeds 0 to 4 it was +7.6, +5.9, +6.2, +9.2 and +5.1 of 57 to 62.

    The floor leaves out what pairs gain with a weight of 0 for L_u. Shorter is too short: in 250
    iterations it was +1.3 for one seed, and scenes of 32 pixels gained nothing in 300.
    """
    miou = {}
    for method in ('supervised', 'cct'):
        config = project_root / 'configs/demo/cct_shapes.py'
        options = {**SHORT, 'method': method, 'experiment_name': world.experiment()}
        prepared = prepare_training(
            str(config), Request(work_dir=str(tmp_path / method), options=options)
        )
        train(prepared)
        (log,) = (tmp_path / method).glob('*/vis_data/scalars.json')
        (miou[method],) = [line['mIoU'] for line in map(json.loads, log.open()) if 'mIoU' in line]
    assert miou['cct'] > miou['supervised'] + 3, miou
