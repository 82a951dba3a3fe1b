"""Options and exit codes of studies, with fake trainings."""

import argparse
import signal

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.studies.ablation import write_ablation
from mmseg_cct.studies.cli import add_study_arguments, gpu_ids, run_study, slots_of


@pytest.fixture
def study(fake_tools, tmp_path):
    """Runs a study with the pretended train.py; gives the exit code."""
    out = tmp_path / 'out'

    def run(prepare, *options):
        out.mkdir(exist_ok=True)
        parser = argparse.ArgumentParser()
        add_study_arguments(parser, takes_method=False)
        args = parser.parse_args(['config.py', '--out', str(out), *options])
        return run_study(args, prepare, write_ablation, fake_tools)

    run.out = out
    return run


def test_finished(study, make_run, capsys):
    assert study(lambda: [make_run('a')]) == 0
    assert capsys.readouterr().out.endswith(f'wrote {study.out / "ablation.md"}\n')


def test_failed(study, make_run, capsys):
    assert study(lambda: [make_run('a'), make_run('b', fail_before=1)], '--jobs', '2') == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == '1 unfinished run:'
    assert lines[1].startswith('b: train FAILED (exit code 1), see ')


def test_stopped(study, make_run, capsys, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr('mmseg_cct.studies.execution.execute', stop)
    assert study(lambda: [make_run('a')]) == 128 + signal.SIGINT
    assert 'the same command goes on from here' in capsys.readouterr().err
    assert (study.out / 'ablation.md').is_file()


def test_stopped_before_the_first_run(study, capsys):
    def stop():
        study.out.rmdir()
        raise KeyboardInterrupt

    assert study(stop) == 128 + signal.SIGINT
    assert not study.out.exists()  # tables alone would be no study, and so not be gone on with


@pytest.mark.parametrize('options', [(), ('--collect',)])
@pytest.mark.parametrize('stranger', ['config.py', 'a/config.py', 'a/b/c/config.py'])
def test_the_files_of_others_are_kept(study, options, stranger):
    for name in ('results.csv', 'ablation.md', stranger):
        (study.out / name).parent.mkdir(parents=True, exist_ok=True)
        (study.out / name).write_text('mine')
    said = r'out holds .*, which this tool did not write: there is no .*seed.*config\*\.py'
    with pytest.raises(UserError, match=said):
        study(lambda: pytest.fail('prepared'), *options)
    for name in ('results.csv', 'ablation.md'):
        assert (study.out / name).read_text() == 'mine'


@pytest.mark.parametrize('first', ['config.py', 'config.tmp.py'])
def test_a_study_is_collected_again(study, make_run, first):
    folder = study.out / 'cct' / 'config' / 'seed0'
    folder.mkdir(parents=True)
    (folder / first).touch()  # the latter after a kill while the first config was written
    assert study(None, '--collect') == 0 == study(None, '--collect')


def test_no_job_is_refused(study, capsys):
    with pytest.raises(SystemExit):
        study(lambda: pytest.fail('prepared'), '--jobs', '0')
    assert 'argument --jobs: 0' in capsys.readouterr().err


def test_slots():
    slots = [dict(CUDA_VISIBLE_DEVICES='0'), dict(CUDA_VISIBLE_DEVICES='3')]
    assert slots_of(gpu_ids('0, 3'), 1) == slots
    assert slots_of(None, 2) == [{}, {}]


@pytest.mark.parametrize('gpus', ['0,', '1,1'])
def test_what_are_no_gpus(gpus):
    with pytest.raises(argparse.ArgumentTypeError, match=f'^{gpus}; expected different ids'):
        gpu_ids(gpus)
