"""Trains CCT and its supervised baseline from Python and compares their mIoU.

On the command line:
    mmseg-cct train configs/demo/cct_shapes.py
    mmseg-cct train configs/demo/cct_shapes.py --method supervised
    mmseg-cct test work_dirs/cct_shapes

Usage: python examples/1_train.py [ITERATIONS]
"""

import sys

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.run import Run
from mmseg_cct.apis.test import prepare_test, test
from mmseg_cct.apis.train import prepare_training, train

CONFIG = 'configs/demo/cct_shapes.py'
iterations = int(sys.argv[1]) if sys.argv[1:] else 1400

miou = {}
for method in ('supervised', 'cct'):
    # what `--method` and `--cfg-options` say on the command line
    options = {
        'method': method,
        'train_cfg.max_iters': iterations,
        'train_cfg.val_interval': iterations,
        'default_hooks.checkpoint.interval': iterations,
    }
    folder = f'work_dirs/examples/{method}'
    train(prepare_training(CONFIG, Request(work_dir=folder, options=options)))
    metrics = test(prepare_test(Run.open(folder)))
    miou[method] = metrics['mIoU']

print(f'mIoU: supervised {miou["supervised"]:.1f}, CCT {miou["cct"]:.1f}')
