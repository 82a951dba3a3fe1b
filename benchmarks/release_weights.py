#!/usr/bin/env python
"""Makes the files of a release from a training, and prints their entry for a metafile.yml.

Into OUT: the published network in float16 with the hash in its name, the scalars of its training as
lines of JSON, and SHA256SUMS. The entry's mIoU is that of the published file on the test set.

Examples:
    python benchmarks/release_weights.py work_dirs/cct-strong_mbv2-jpu_idd-lite_20 \
        --url https://github.com/mmseg-cct/mmseg-cct/releases/download/v0.1.0 --out release
"""

import argparse
import hashlib
import shutil
import subprocess
from pathlib import Path

import yaml

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
    parser.add_argument('--url', required=True, help='address of the folder of the files')
    parser.add_argument('--out', type=Path, required=True, help='a folder')
    args = parser.parse_args()
    with user_errors_as_one_line():
        run = Run.open(args.work_dir)
        name = Path(run.config.filename).stem
        logs = sorted(args.work_dir.glob('*/vis_data/scalars.json'))
        if len(logs) != 1:  # a resumed training has one per start
            raise UserError(args.work_dir, f'{len(logs)} scalars.json', 'that of one training')
        published = publish(run, str(args.out / f'{name}.pth'), half=True)
        # the same file of weights by the training's config, which has the test set
        tested = Run.open(run.config.filename, published.checkpoint)
        scores = test(prepare_test(tested, work_dir=str(args.work_dir / 'released')))

    weights, log = Path(published.checkpoint), args.out / f'{Path(published.checkpoint).stem}.json'
    shutil.copy(logs[0], log)
    sums = [(hashlib.sha256(file.read_bytes()).hexdigest(), file.name) for file in (weights, log)]
    (args.out / 'SHA256SUMS').write_text(''.join(f'{digest}  {file}\n' for digest, file in sums))
    commit = subprocess.check_output(['git', 'rev-parse', 'HEAD'], cwd=ROOT, text=True).strip()
    entry = {
        'Name': name,
        'Weights': f'{args.url}/{weights.name}',
        'Training Log': f'{args.url}/{log.name}',
        'Code': {'Version': commit},
        'Metadata': {'Iterations': run.config.train_cfg.max_iters},
        'Results': [{'Task': 'Semantic Segmentation', 'Metrics': {'mIoU': scores['mIoU']}}],
    }
    print(f'{weights}: {weights.stat().st_size / 1e6:.1f} MB')
    print(yaml.safe_dump([entry], sort_keys=False))


if __name__ == '__main__':
    main()
