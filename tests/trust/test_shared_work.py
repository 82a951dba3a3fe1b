"""Two processes that share a list of images: the same files as one, and what a kill costs."""

import shutil
import signal
import time

import pytest
from ranks import outcomes, start_tool, without_cuda
from world import contents, write_photos

pytestmark = without_cuda
NUMBER = 30


@pytest.fixture(scope='module')
def photos(tmp_path_factory):
    sizes = {f'{index:03}.png': (40, 56) for index in range(NUMBER)}
    return write_photos(tmp_path_factory.mktemp('photos'), sizes)


def test_two_processes_predict_what_one_does(trained, photos, tmp_path):
    one, two, more = tmp_path / 'one', tmp_path / 'two', tmp_path / 'photos'
    shutil.copytree(photos, more)
    (more / 'bad.png').write_bytes(b'no image')
    files = trained.file, trained.checkpoint
    first, second = outcomes(start_tool(tmp_path, 'predict', *files, more, '--out', two))
    assert (first[0], second[0]) == (1, 0), first[2] + second[2]
    assert first[1].endswith(f'{NUMBER} written to {two}, 0 there already, 1 unreadable\n')
    assert second[1] == ''
    assert (first[2] + second[2]).count('bad.png: cannot be read') == 1

    assert trained.run('predict', *files, photos, '--out', one) == 0
    for kind in ('masks', 'overlays'):
        assert contents(one / kind) == contents(two / kind)


def test_a_killed_process_loses_its_current_image_alone(trained, photos, tmp_path):
    out = tmp_path / 'out'
    command = 'predict', trained.file, trained.checkpoint, photos, '--out', out
    _, victim = processes = start_tool(tmp_path, *command)
    of_victim = [out / 'overlays' / f'{index:03}.png' for index in range(1, NUMBER, 2)]
    deadline = time.monotonic() + 200
    while not of_victim[0].exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    victim.process.kill()
    first, second = outcomes(processes)
    assert second[0] == -signal.SIGKILL
    written = len(list((out / 'overlays').glob('*.png')))
    assert all((out / 'overlays' / f'{index:03}.png').exists() for index in range(0, NUMBER, 2))
    assert written < NUMBER  # the victim was at work
    assert first[0] == 2
    assert 'error: another process ended before its share was done' in first[2]
    first, second = outcomes(start_tool(tmp_path, *command))
    assert (first[0], second[0]) == (0, 0)
    assert f'{NUMBER - written} written to {out}, {written} there already' in first[1]
