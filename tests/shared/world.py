"""Small data on disk, and the tools run in this process: what the tests of whole runs share."""

import importlib.util
import itertools
import json
import sys
from pathlib import Path

import cv2
import numpy as np

PROJECT = Path(__file__).parents[2]
_runs = itertools.count()


def experiment():
    """A name of its own: mmengine keeps one logger and message hub per name and second."""
    return f'run{next(_runs)}'


def write_scene(root, name, rng, prefix='', with_mask=True):
    """A smooth picture of 40×32 and a mask with regions of 3 classes."""
    image = cv2.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), (40, 32))
    labels = rng.integers(0, 3, (4, 5), np.uint8)
    mask = cv2.resize(labels, (40, 32), interpolation=cv2.INTER_NEAREST)
    for kind, pixels in (('images', image), ('masks', mask)):
        (root / f'{prefix}{kind}').mkdir(parents=True, exist_ok=True)
        if kind == 'images' or with_mask:
            cv2.imwrite(str(root / f'{prefix}{kind}/{name}.png'), pixels)


def run_tool(name, *args):
    """Runs a tool's main() as on the command line and returns what it returns or exits with."""
    path = PROJECT / 'tools' / f'{name}.py'
    spec = importlib.util.spec_from_file_location(f'tool_{name}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    args = [str(arg) for arg in args]
    if name in ('train', 'test'):
        if '--cfg-options' not in args:
            args.append('--cfg-options')
        args.append(f'experiment_name={experiment()}')
    argv, sys.argv = sys.argv, [str(path), *args]
    try:
        return module.main()
    finally:
        sys.argv = argv


def scalars(work_dir):
    """What all runs in a work directory logged: the lines of each iteration, in time's order."""
    logged = {}
    for path in sorted(Path(work_dir).glob('*/vis_data/scalars.json')):
        for line in path.read_text().splitlines():
            line = json.loads(line)
            if 'loss' in line:
                logged.setdefault(line['iter'], []).append(line)
    return logged
