#!/usr/bin/env python
"""Makes the files of a release from a training, and prints their entry for a metafile.yml.

Into OUT: the published network in float16 with the hash in its name, the scalars of its training as
lines of JSON, and SHA256SUMS. The entry's mIoU is that of the published file on the test set.

Examples:
    python benchmarks/release_weights.py work_dirs/cct-strong_mbv2-jpu_idd-lite_20 \
        --config configs/cct/cct_mbv2-jpu_idd-lite_20.py --data-set 'IDD Lite' --out release \
        --url https://github.com/mmseg-cct/mmseg-cct/releases/download/v1.0.0
"""

import argparse
import hashlib
import shutil
import subprocess
from pathlib import Path

import yaml

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.publish import publish
from mmseg_cct.apis.run import Run
from mmseg_cct.apis.test import prepare_test, test
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Publishes, tests what was published, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('work_dir', type=Path)
    parser.add_argument('--config', required=True, help='shipped config, for mim')
    parser.add_argument('--data-set', required=True, help='its name in the entry')
    parser.add_argument('--url', required=True, help='address of the folder of the files')
    parser.add_argument('--out', type=Path, required=True, help='a folder')
    args = parser.parse_args()
    with user_errors_as_one_line():
        run = Run.open(args.work_dir)
        name = Path(run.config.filename).stem
        logs = sorted(args.work_dir.glob('*/vis_data/scalars.json'))
        if len(logs) != 1:  # a resumed training has one per start
            raise UserError(args.work_dir, f'{len(logs)} scalars.json', 'that of one training')
        weights = Path(publish(run, str(args.out / f'{name}.pth'), half=True).checkpoint)
        # the training's config has the test set, which a published one lacks
        tested = Run.open(run.config.filename, weights)
        scores = test(prepare_test(tested, Request(work_dir=str(args.work_dir / 'released'))))

    log = weights.with_suffix('.json')
    shutil.copy(logs[0], log)
    sums = [(hashlib.sha256(file.read_bytes()).hexdigest(), file.name) for file in (weights, log)]
    (args.out / 'SHA256SUMS').write_text(''.join(f'{digest}  {file}\n' for digest, file in sums))
    commit = subprocess.check_output(['git', 'rev-parse', 'HEAD'], cwd=ROOT, text=True).strip()
    result = {
        'Task': 'Semantic Segmentation',
        'Dataset': args.data_set,
        'Metrics': {'mIoU': round(float(scores['mIoU']), 1)},
    }
    entry = {
        'Name': name,
        'In Collection': 'CCT',
        'Config': args.config,
        'Weights': f'{args.url}/{weights.name}',
        'Training Log': f'{args.url}/{log.name}',
        'Code': {'Version': commit},
        'Metadata': {'Iterations': run.config.train_cfg.max_iters},
        'Results': [result],
    }
    print(f'{weights}: {weights.stat().st_size / 1e6:.1f} MB')
    print(yaml.safe_dump([entry], sort_keys=False))


if __name__ == '__main__':
    main()
