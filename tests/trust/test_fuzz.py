"""Random damage: one line or a result, and inputs as before.

It is done to settings, command lines, images, checkpoints, records of earlier runs and names. All
tools run in one process. `--fuzz-seconds 3600 --fuzz-seed 1` looks for longer, at other places.
"""

import copy
import json
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
from world import MakesFolder, contents

VALUES = (
    None, -1, 0, 1, 2**32, 1e30, float('inf'), 'x', '', '../..', True, [], [1], {}, {'type': 'X'},
    dict(type='IoUMetric'), 'a\nb', 'é' * 300, '/dev/null', '$(touch ran)', "__import__('os')",
)  # fmt: skip
ARGUMENTS = ('-1', '0', 'x', '', '..', '/dev/null', 'tiny.py', 'data', 'gpu7', '--', '--help-me')
COMMANDS = (
    ('train', 'tiny.py', '--work-dir', 'w'),
    ('train', 'tiny.py', '--work-dir', 'w', '--resume', 'x.pth'),
    ('test', 'tiny.py', 'x.pth', '--work-dir', 't', '--out', 'o', '--show-dir', 's'),
    ('predict', 'tiny.py', 'x.pth', 'data/val_images', '--out', 'o', '--device', 'cpu'),
    ('convert_checkpoint', 'x.pth', 'y.pth'),
    ('publish_model', 'x.pth', 'y.pth'),
    ('make_splits', '--images', 'data/images', '-n', '2', '--out', 's'),
    ('next_batch', 'x.pth', '--images', 'data/images', '-n', '1', '--out', 'r'),
    ('new_config', 'data', '--classes', 'a', 'b', 'c', '--from-scratch', '--out', 's'),
    ('analyze_clusters', 'tiny.py', 'x.pth', '--out', 'o', '--num-images', '1'),
)
# These go on from what an earlier run has left.
GOING_ON = (
    ('train', 'tiny.py', '--work-dir', 'w', '--resume'),
    ('predict', 'tiny.py', 'x.pth', 'data/val_images', '--out', 'o', '--device', 'cpu'),
    ('next_batch', 'x.pth', '--images', 'data/images', '-n', '1', '--out', 'r'),
    ('report', 'run=w', '--out', 't'),
)
RECORDS = 'w/last_checkpoint', 'w/*/vis_data/*.json', 'w/*.pth', '[orw]/*.json*', 'r/*/*.jsonl'
NAMES = (
    '$x$', '-v', 'a b', 'a\nb', '{{ fileDirname }}', '%s', "it's", '<b>', 'é', 'x' * 240, '.png',
    os.fsdecode(b'caf\xe9'), 'a.jpg b', '#',
)  # fmt: skip
TENSORS = (
    lambda t: torch.full_like(t, float('nan')) if t.is_floating_point() else -t,
    lambda t: torch.zeros(1).expand(2**40),
    lambda t: t.to('meta'),
    lambda t: t.flatten()[:1],
    lambda t: t[None],
    lambda t: t.to(torch.complex64),
    lambda t: t.to(torch.int8),
    lambda t: t.reshape(t.shape[0] if t.dim() else 1, -1).to_sparse(),
    lambda t: t.numpy(),
    lambda t: torch.zeros(0),
)


def nodes(part):
    """All places in a config: each the dict or list that holds something, and the name there."""
    for name in list(part) if isinstance(part, dict) else range(len(part)):
        yield part, name
        if isinstance(part[name], (dict, list)):
            yield from nodes(part[name])


def change(rng, owner, name):
    """Replaces, drops, wraps or unwraps a part of its owner, and says which."""
    value = owner[name]
    kind = rng.randrange(5)
    if isinstance(value, torch.Tensor) and kind:
        owner[name] = rng.choice(TENSORS)(value)
    elif kind == 0:
        del owner[name]
    elif kind == 1:
        owner[name] = rng.choice([[value], dict(type=value), {'x': value}, {3: value}])
    elif kind == 2 and isinstance(value, dict):
        owner[name] = rng.choice([list(value), list(value.values())])
    elif kind == 2 and isinstance(value, list):
        owner[name] = {str(index): part for index, part in enumerate(value)}
    else:
        owner[name] = rng.choice(VALUES)
    return f'{name}={owner.get(name, "gone") if isinstance(owner, dict) else owner}'[:300]


def change_setting(rng, config):
    """Changes any part of the config."""
    owner, name = rng.choice(list(nodes(config)))
    what = change(rng, owner, name)
    if name == 'max_iters' and isinstance(owner, dict) and owner.get(name) == 2**32:
        owner[name] = 0  # it may be meant
    return what


def change_checkpoint(rng, folder):
    """Changes any part of the checkpoint; a section counts as much as another, however large."""
    content = torch.load(folder / 'x.pth', weights_only=False)
    owner, name = content, rng.choice(list(content))
    while isinstance(owner[name], (dict, list)) and owner[name] and rng.random() < 0.7:
        owner = owner[name]
        name = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
    what = change(rng, owner, name)
    torch.save(content, folder / 'x.pth')
    return what


def change_bytes(rng, file):
    """Cuts, flips, empties or replaces the bytes of a file."""
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
        data = rng.choice([b'<html></html>', b'PK', b'\x89PNG\r\n', b'[' * 9999, b'null', b'[1]\n'])
    elif file.suffix == '.pth':
        data = pickle.dumps(MakesFolder())
        if rng.random() < 0.5:
            torch.save({'state_dict': [MakesFolder()]}, file)
            data = file.read_bytes()
    file.write_bytes(bytes(data))
    return f'{file.name}: {bytes(data[:40])!r}'


def change_file(rng, folder):
    """Changes the bytes of an image, a mask or the checkpoint."""
    files = sorted(path for path in (folder / 'data').rglob('*') if path.is_file())
    return change_bytes(rng, rng.choice([*files, *[folder / 'x.pth'] * len(files)]))


def change_record(rng, folder):
    """Changes what an earlier run has left: a value of JSON, or the bytes."""
    file = rng.choice(sorted(path for pattern in RECORDS for path in folder.glob(pattern)))
    if not file.suffix.startswith('.json') or rng.random() < 0.5:
        return change_bytes(rng, file)
    text = file.read_text()
    # one value, or one in each line
    parts = text.splitlines() if '\n{' in text else [text]
    values = [json.loads(part) for part in parts if part]
    what = change(rng, *rng.choice(list(nodes(values))))
    file.write_text('\n'.join(map(json.dumps, values)))
    return f'{file.name}: {what}'


def change_name(rng, folder):
    """Gives an image or a mask an odd name, or another place in a circle of links."""
    file = rng.choice(sorted(path for path in (folder / 'data').rglob('*') if path.is_file()))
    name = rng.choice(NAMES)
    new = file.with_name(f'{name}{rng.choice(["", ".PNG", file.suffix])}')
    if rng.random() < 0.2:
        file.unlink()
        file.symlink_to(rng.choice([file, file.parent, folder / 'gone']))
        return f'{file} is a link'
    if not new.exists():
        file.rename(new)
    return f'{file.name} is {new.name!a}'


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


def inputs_of(folder):
    """Data, config and checkpoint: what may not change."""
    return contents(folder, 'data/**/*') | contents(folder, 'tiny.py') | contents(folder, 'x.pth')


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
    for name in ('w', 't', 'o', 'r', 's', 'work_dirs'):
        shutil.rmtree(cct.folder / name, ignore_errors=True)
    for path in (*cct.folder.glob('y*'), cct.folder / 'p.png'):
        path.unlink(missing_ok=True)
    shutil.rmtree(cct.data)
    shutil.copytree(cct.folder / 'kept/data', cct.data)
    shutil.copy(trained.checkpoint, cct.folder / 'x.pth')
    # those of the earlier run have the times that they had
    shutil.copystat(trained.checkpoint, cct.folder / 'x.pth')
    config = copy.deepcopy(original)
    config['train_cfg']['max_iters'] = 6
    arguments, what = rng.choice(COMMANDS), ''
    kind = rng.choices(range(6), (4, 1, 1, 2, 2, 1))[0]
    if kind == 0:
        what = change_setting(rng, config)
    elif kind == 1:
        what = change_file(rng, cct.folder)
    elif kind == 2:
        arguments = change_arguments(rng, arguments)
    elif kind == 3:
        what = change_checkpoint(rng, cct.folder)
    elif kind == 4:
        arguments = rng.choice(GOING_ON)
        for name in ('w', 'o', 'r'):
            shutil.copytree(cct.folder / 'kept' / name, cct.folder / name)
        what = change_record(rng, cct.folder)
    else:
        what = change_name(rng, cct.folder)
    Config(config).dump(cct.file)
    return arguments, what


def keep(cct, trained):
    """Keeps the data, and what runs of the tools leave."""
    kept = cct.folder / 'kept'
    shutil.copytree(cct.data, kept / 'data')
    shutil.copytree(trained.work_dir, kept / 'w')
    shutil.copy2(trained.checkpoint, cct.folder / 'x.pth')
    for arguments in GOING_ON[1:3]:
        assert cct.tool(*arguments) == 0
    (cct.folder / 'r/review.html').unlink()  # the last that it writes
    for name in ('o', 'r'):
        (cct.folder / name).rename(kept / name)


def test_no_traceback_no_lost_input_no_foreign_code(cct, trained, request, capfd):
    seed = request.config.getoption('--fuzz-seed')
    seconds = request.config.getoption('--fuzz-seconds')
    keep(cct, trained)
    original = cct.config.to_dict()
    start, number, failures = time.monotonic(), 0, []
    while number < 5 or time.monotonic() - start < seconds:  # five on a slow machine, too
        arguments, what = damage(random.Random(f'{seed} {number}'), cct, original, trained)
        before = inputs_of(cct.folder)
        what = f'--fuzz-seed {seed}, number {number}: {arguments} {what}'
        number += 1
        code = None
        try:
            with ends_within(60):
                code = cct.tool(*arguments)
        except Exception as error:
            frames = traceback.format_tb(error.__traceback__)[-3:]
            failures.append(f'{what}: {type(error).__name__}: {error}\n{"".join(frames)}')
        capfd.readouterr()
        if (cct.folder / 'ran').exists():
            failures.append(f'{what}: foreign code ran')
        after = inputs_of(cct.folder)
        if {path: after.get(path) for path in before} != before:
            failures.append(f'{what}: exit {code}, and an input changed')
    assert not failures, f'{len(failures)} of {number}:\n' + '\n'.join(failures)
