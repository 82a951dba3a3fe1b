"""Random damage to settings, files and command lines: one line or a result, and inputs as before.

`--fuzz-seconds 3600 --fuzz-seed 1` looks for longer, at other places.
"""

import fnmatch
import hashlib
import os
import pickle
import random
import shutil
import time

import torch

from mmseg_cct.apis.config_rules import RULES

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
    ('plot_ramps', 'tiny.py', '--out', 'p.png'),
)


class MakesFolder:
    """Pickles as a call that leaves a folder behind."""

    def __reduce__(self):
        return os.mkdir, (os.path.abspath('ran'),)


def places(part, key=''):
    """Dotted keys of all settings."""
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for name, value in items:
        here = f'{key}.{name}' if key else str(name)
        yield here
        if isinstance(value, (dict, list, tuple)):
            yield from places(value, here)


def change_setting(rng, config, folder):
    """Sets one of the settings that `config_rules` holds, and which a run reads late."""
    keys = [
        key
        for key in places(config)
        if any(fnmatch.fnmatchcase(key, rule.pattern) for rule in RULES)
    ]
    *path, name = rng.choice(keys).split('.')
    owner = config
    for part in path:
        owner = owner[int(part) if isinstance(owner, (list, tuple)) else part]
    owner[int(name) if isinstance(owner, list) else name] = rng.choice(VALUES)


def change_file(rng, config, folder):
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


def test_no_traceback_no_lost_input_no_foreign_code(cct, trained, request, capfd):
    seed = request.config.getoption('--fuzz-seed')
    seconds = request.config.getoption('--fuzz-seconds')
    shutil.copytree(cct.data, cct.folder / 'kept')
    original = cct.config.copy()
    start, number = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        rng = random.Random(f'{seed} {number}')
        number += 1
        for name in ('w', 't', 'o', 's'):
            shutil.rmtree(cct.folder / name, ignore_errors=True)
        for path in (*cct.folder.glob('y*.pth'), cct.folder / 'p.png'):
            path.unlink(missing_ok=True)
        shutil.rmtree(cct.data)
        shutil.copytree(cct.folder / 'kept', cct.data)
        shutil.copy(trained.checkpoint, cct.folder / 'x.pth')
        config = original.to_dict()
        config['train_cfg']['max_iters'] = 6
        arguments = rng.choice(COMMANDS)
        change = rng.randrange(3)
        if change == 0:
            change_setting(rng, config, cct.folder)
        elif change == 1:
            change_file(rng, config, cct.folder)
        else:
            arguments = change_arguments(rng, arguments)
        cct.config = type(original)(config)
        cct.config.dump(cct.file)
        before = contents(cct.folder)
        what = f'--fuzz-seed {seed}, number {number - 1}: {arguments}'
        try:
            code = cct.tool(*arguments)
        except Exception as error:
            raise AssertionError(f'{what}: {type(error).__name__}: {error}') from error
        capfd.readouterr()
        assert not (cct.folder / 'ran').exists(), f'{what}: foreign code ran'
        after = contents(cct.folder)
        assert {path: after.get(path) for path in before} == before, (
            f'{what}: exit {code}, and an input changed'
        )
    assert number >= min(5, seconds)
