"""Two processes that share a list of images: the same files as one, and what a kill costs."""

import signal
import time

from ranks import outcomes, start_tool, without_cuda
from world import contents, write_photos

NUMBER = 30


@without_cuda
def test_two_processes_write_what_one_does_and_a_killed_one_loses_an_image(trained, tmp_path):
    sizes = {f'{index:03}.png': (40, 56) for index in range(NUMBER)}
    photos = write_photos(tmp_path / 'photos', sizes)
    one, two, network = tmp_path / 'one', tmp_path / 'two', (trained.file, trained.checkpoint)
    assert trained.run('predict', *network, photos, '--out', one) == 0

    (photos / 'bad.png').write_bytes(b'no image')
    command = 'predict', *network, photos, '--out', two
    _, victim = processes = start_tool(tmp_path, *command)
    of_victim = [two / 'overlays' / f'{index:03}.png' for index in range(1, NUMBER, 2)]
    deadline = time.monotonic() + 200
    while not of_victim[0].exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    victim.process.kill()
    first, second = outcomes(processes)
    assert (first[0], second[0]) == (2, -signal.SIGKILL)
    assert 'error: another process ended before its share was done' in first[2]
    written = len(list((two / 'overlays').glob('*.png')))
    assert all((two / 'overlays' / f'{index:03}.png').exists() for index in range(0, NUMBER, 2))
    assert written < NUMBER  # the victim was at work

    first, second = outcomes(start_tool(tmp_path, *command))
    assert (first[0], second[0]) == (1, 0), first[2] + second[2]
    counts = f'{NUMBER - written} written to {two}, {written} there already, 1 unreadable'
    assert counts in first[1] and second[1] == ''
    assert (first[2] + second[2]).count('bad.png: cannot be read') == 1
    for kind in ('masks', 'overlays'):
        assert contents(one / kind) == contents(two / kind)
