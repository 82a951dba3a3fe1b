import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from mmseg_cct.studies.execution import Processes, StudyRun, execute, find_runs, finish
from mmseg_cct.utils.files import locked_folder


def iterations(run):
    return (run.folder / 'train' / 'iterations').read_text().split()


def test_a_run_is_trained_and_tested(fake_tools, make_run, capsys):
    run = make_run('a', miou=12.5)
    assert run.next_step() == 'train'
    assert execute([run], fake_tools, [{}]) == []
    assert run.next_step() is None
    assert iterations(run) == ['1', '2', '3']
    assert run.metrics() == dict(aAcc=80.0, mIoU=12.5)
    name = "a, the config's labels, seed 0"
    assert capsys.readouterr().out.splitlines() == [
        f'{name}: train, log in {run.log}',
        f'{name}: test, log in {run.log}',
        f'[1/1] {name}: mIoU 12.50',
    ]


@pytest.fixture
def interruptible():
    """A shell's background jobs ignore Ctrl-C; this test does not, wherever it runs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == 'nt', reason='os.kill ends a process there, whatever the signal')
@pytest.mark.parametrize('sent', ['SIGINT', 'SIGTERM'])
@pytest.mark.usefixtures('interruptible')
def test_a_stopped_study_goes_on_where_it_was(fake_tools, make_run, monkeypatch, sent):
    """And ends its trainings, even one that does not listen."""
    finished, later = make_run('a'), make_run('c')
    stopped = make_run('b', stall_before=3, deaf=True)
    monkeypatch.setenv('STALL', '1')

    def stop():
        latest = stopped.folder / 'train' / 'last_checkpoint'
        while not (latest.is_file() and latest.read_text().endswith('iter_2.pth')):
            time.sleep(0.02)
        os.kill(os.getpid(), getattr(signal, sent))

    killer = threading.Thread(target=stop)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        execute([finished, stopped, later], fake_tools, [{}])
    killer.join()
    with pytest.raises(ProcessLookupError):  # it is gone, and not left to itself
        os.kill(int((stopped.folder / 'train' / 'pid').read_text()), 0)
    assert [run.next_step() for run in (finished, stopped, later)] == [None, 'train', 'train']
    assert iterations(stopped) == ['1', '2']

    monkeypatch.delenv('STALL')
    assert execute([finished, stopped, later], fake_tools, [{}]) == []
    for run in (finished, stopped, later):
        assert iterations(run) == ['1', '2', '3']
        assert len(list(run.folder.glob('test/*'))) == 1


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems cannot say so')
def test_the_trainings_of_a_killed_study_end(fake_tools, make_run, monkeypatch):
    run = make_run('a', stall_before=3)
    monkeypatch.setenv('STALL', '1')
    latest, process = run.folder / 'train' / 'last_checkpoint', os.fork()
    if process == 0:
        execute([run], fake_tools, [{}])
        os._exit(0)
    while not (latest.is_file() and latest.read_text().endswith('iter_2.pth')):
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    training, end = int((run.folder / 'train' / 'pid').read_text()), time.monotonic() + 30
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(training, 0)
            time.sleep(0.02)


def test_after_the_training_only_the_test_is_left(fake_tools, make_run):
    run = make_run('a')
    (run.folder / 'train').mkdir()
    run.checkpoint.touch()
    assert run.next_step() == 'train'  # a checkpoint that may be cut short
    (run.folder / 'train' / 'last_checkpoint').write_text(f'/moved/since/{run.checkpoint.name}')
    assert run.next_step() == 'test'
    assert execute([run], fake_tools, [{}]) == []
    assert not (run.folder / 'train' / 'iterations').exists()


def test_a_failed_run_is_named_and_the_others_go_on(fake_tools, make_run, capsys):
    bad, good = make_run('bad', fail_before=2), make_run('good')
    (failure,) = execute([bad, good], fake_tools, [{}])
    assert failure.endswith(f'train FAILED, see {bad.log}: ValueError: the data is bad')
    assert failure in capsys.readouterr().out
    assert good.next_step() is None
    assert 'Traceback' in bad.log.read_text()


def test_runs_share_the_slots_one_at_a_time(fake_tools, make_run, tmp_path):
    four = [make_run(name, beside=str(tmp_path)) for name in 'abcd']
    slots = [dict(CUDA_VISIBLE_DEVICES='0'), dict(CUDA_VISIBLE_DEVICES='3')]
    assert execute(four, fake_tools, slots) == []
    spans = {'0': [], '3': []}
    for run in four:
        gpu, start, end = (run.folder / 'train' / 'where').read_text().split()
        spans[gpu].append((float(start), float(end)))
    for times in spans.values():
        (_, first_end), (second_start, _) = sorted(times)
        assert first_end < second_start
    assert spans['0'][0][0] < spans['3'][0][1] and spans['3'][0][0] < spans['0'][0][1]


def test_a_run_of_several_processes_is_torchruns(make_run, monkeypatch):
    commands = []
    monkeypatch.setattr(Processes, 'run', lambda self, command, *_: commands.append(command))
    finish(make_run('a'), Path('tools'), processes=3)
    (command,) = commands
    assert command[1:3] == ['-m', 'torch.distributed.run'] and '--nproc-per-node=3' in command
    assert Path('tools/train.py') in command and command[-2:] == ['--launcher', 'pytorch']


def test_a_run_that_another_process_works_on_is_left_alone(fake_tools, make_run):
    taken, free = make_run('taken'), make_run('free')
    with locked_folder(taken.folder, 'another study'):
        (failure,) = execute([taken, free], fake_tools, [{}])
    assert failure.startswith(f'{taken.name}: left alone, {taken.folder}: in use by')
    assert not list(taken.folder.glob('train/*'))
    assert free.next_step() is None


def test_runs_are_found_by_their_folders_and_the_latest_whole_metrics_count(tmp_path):
    run = StudyRun(tmp_path, 'cct', '20', 0)
    for number, text in enumerate(('{"mIoU": 10}', '{"mIoU": 20}', '{"mIoU": 3', '[1]'), 1):
        (run.folder / 'test' / str(number)).mkdir(parents=True)
        (run.folder / 'test' / str(number) / f'{number}.json').write_text(text)
    assert run.metrics() == dict(mIoU=20.0)
    others = [StudyRun(tmp_path, 'cct', labels, seed) for labels, seed in (('100', 0), ('20', 11))]
    for other in others:
        other.folder.mkdir(parents=True)
    assert find_runs(tmp_path) == [run, others[1], others[0]]
    assert others[0].metrics() is None
