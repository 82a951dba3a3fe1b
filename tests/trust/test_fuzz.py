"""Random damage to settings, files and command lines: one line or a result, and inputs as before.

`--fuzz-seconds 3600 --fuzz-seed 1` looks for longer, at other places.
"""

import copy
import hashlib
import os
import pickle
import random
import shutil
import signal
import time
import traceback
from contextlib import contextmanager

import torch
from mmengine.config import Config

VALUES = (
    None, -1, 0, 1, 2**32, 1e30, float('inf'), 'x', '', '../..', True, [], [1], {}, {'type': 'X'},
    dict(type='IoUMetric'), 'a\nb', 'é' * 300, '/dev/null', '$(touch ran)', "__import__('os')",
)  # fmt: skip
ARGUMENTS = ('-1', '0', 'x', '', '..', '/dev/null', 'tiny.py', 'data', 'gpu7', '--', '--help-me')
COMMANDS = (
    ('train', 'tiny.py', '--work-dir', 'w'),
    ('train', 'tiny.py', '--work-dir', 'w', '--resume', 'x.pth'),
    ('test', 'tiny.py', 'x.pth', '--work-dir', 't', '--out', 'o'),
    ('predict', 'tiny.py', 'x.pth', 'data/val_images', '--out', 'o', '--device', 'cpu'),
    ('convert_checkpoint', 'x.pth', 'y.pth'),
    ('publish_model', 'x.pth', 'y.pth'),
    ('make_splits', '--images', 'data/images', '-n', '2', '--out', 's'),
    ('next_batch', 'x.pth', '--images', 'data/val_images', '--out', 'o'),
    ('new_config', 'data', '--classes', 'a', 'b', 'c', '--from-scratch', '--out', 'o'),
    ('plot_ramps', 'tiny.py', '--out', 'p.png'),
)


class MakesFolder:
    """Pickles as a call that leaves a folder behind."""

    def __reduce__(self):
        return os.mkdir, (os.path.abspath('ran'),)


def nodes(part):
    """All places in a config: each the dict or list that holds something, and the name there."""
    for name in list(part) if isinstance(part, dict) else range(len(part)):
        yield part, name
        if isinstance(part[name], (dict, list)):
            yield from nodes(part[name])


def change_setting(rng, config):
    """Replaces, drops, wraps or unwraps any part of the config, and says which."""
    owner, name = rng.choice(list(nodes(config)))
    kind = rng.randrange(5)
    if kind == 0:
        del owner[name]
    elif kind == 1:
        owner[name] = rng.choice([[owner[name]], dict(type=owner[name]), {'x': owner[name]}])
    elif kind == 2 and isinstance(owner[name], dict):
        owner[name] = rng.choice([list(owner[name]), list(owner[name].values())])
    elif kind == 2 and isinstance(owner[name], list):
        owner[name] = {str(index): value for index, value in enumerate(owner[name])}
    else:
        owner[name] = rng.choice(VALUES)
        if name == 'max_iters' and owner[name] == 2**32:  # may be meant
            owner[name] = 0
    return f'{name}={owner.get(name, "gone") if isinstance(owner, dict) else owner}'[:300]


def change_file(rng, folder):
    """Cuts, flips, empties or replaces an image, a mask or the checkpoint."""
    files = sorted(path for path in (folder / 'data').rglob('*') if path.is_file())
    file = rng.choice([*files, *[folder / 'x.pth'] * len(files)])
    data = bytearray(file.read_bytes())
    kind = rng.randrange(5)
    if kind == 0:
        data = data[: rng.randrange(len(data))]
    elif kind == 1:
        for _ in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        data = b''
    elif kind == 3:
        data = rng.choice([b'<html></html>', b'PK', b'\x89PNG\r\n', pickle.dumps(MakesFolder())])
    else:
        torch.save({'state_dict': [MakesFolder()]}, file)
        return
    file.write_bytes(bytes(data))


def change_arguments(rng, arguments):
    """Replaces, drops or adds an argument; the tool stays."""
    arguments = list(arguments)
    place = rng.randrange(1, len(arguments) + 1)
    kind = rng.randrange(3)
    if kind == 0 or place == len(arguments):
        arguments.insert(place, rng.choice(ARGUMENTS))
    elif kind == 1:
        arguments[place] = rng.choice(ARGUMENTS)
    else:
        del arguments[place]
    return arguments


def contents(folder):
    """Data, config and checkpoint: what may not change."""
    files = [folder / 'tiny.py', folder / 'x.pth', *(folder / 'data').rglob('*')]
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file()
    }


@contextmanager
def ends_within(seconds):
    """Raises TimeoutError in a body that takes longer."""

    def stop(*_):
        raise TimeoutError(f'did not end within {seconds} s')

    earlier = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


def damage(rng, cct, original, trained):
    """Damages one thing of the run that is then tried; returns its command line and what it was."""
    for name in ('w', 't', 'o', 's', 'work_dirs'):
        shutil.rmtree(cct.folder / name, ignore_errors=True)
    for path in (*cct.folder.glob('y*.pth'), cct.folder / 'p.png'):
        path.unlink(missing_ok=True)
    shutil.rmtree(cct.data)
    shutil.copytree(cct.folder / 'kept', cct.data)
    shutil.copy(trained.checkpoint, cct.folder / 'x.pth')
    config = copy.deepcopy(original)
    config['train_cfg']['max_iters'] = 6
    arguments = rng.choice(COMMANDS)
    change = rng.choices(range(3), (4, 1, 1))[0]
    what = ''
    if change == 0:
        what = change_setting(rng, config)
    elif change == 1:
        change_file(rng, cct.folder)
    else:
        arguments = change_arguments(rng, arguments)
    Config(config).dump(cct.file)
    return arguments, what


def test_no_traceback_no_lost_input_no_foreign_code(cct, trained, request, capfd):
    seed = request.config.getoption('--fuzz-seed')
    seconds = request.config.getoption('--fuzz-seconds')
    shutil.copytree(cct.data, cct.folder / 'kept')
    original = cct.config.to_dict()
    start, number, failures = time.monotonic(), 0, []
    while time.monotonic() - start < seconds:
        arguments, what = damage(random.Random(f'{seed} {number}'), cct, original, trained)
        before = contents(cct.folder)
        what = f'--fuzz-seed {seed}, number {number}: {arguments} {what}'
        number += 1
        code = None
        try:
            with ends_within(30):
                code = cct.tool(*arguments)
        except Exception as error:
            frames = traceback.format_tb(error.__traceback__)[-3:]
            failures.append(f'{what}: {type(error).__name__}: {error}\n{"".join(frames)}')
        capfd.readouterr()
        if (cct.folder / 'ran').exists():
            failures.append(f'{what}: foreign code ran')
        after = contents(cct.folder)
        if {path: after.get(path) for path in before} != before:
            failures.append(f'{what}: exit {code}, and an input changed')
    assert number >= min(5, seconds)
    assert not failures, f'{len(failures)} of {number}:\n' + '\n'.join(failures)
