import json
import os

import numpy as np
import pytest
from PIL import Image

from mmseg_cct.apis.run import Run
from mmseg_cct.apis.test import prepare_test
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import locked_folder


def _metrics(work_dir):
    (path,) = work_dir.glob('*/[0-9]*.json')
    return json.loads(path.read_text())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_metrics_and_predictions_are_written(trained, here):
    trained.run(
        'test', trained.file, trained.checkpoint, '--work-dir', 'w', '--out', 'png',
        '--show-dir', 'painted',
    )  # fmt: skip
    assert 0 <= _metrics(here / 'w')['mIoU'] <= 100
    predicted = np.array(Image.open(here / 'png' / 'v0.png'))
    assert predicted.shape == (32, 40) and predicted.max() < 3
    assert len(list((here / 'painted').rglob('*.png'))) == 3


def test_a_folder_of_predictions_is_one_tests_at_a_time(trained, here, capsys):
    tested = 'test', trained.file, trained.checkpoint, '--work-dir', 'w'
    for option in ('--out', '--show-dir'):
        with locked_folder('png', 'x'):
            assert trained.tool(*tested, option, 'png') == 2
        assert 'png: in use by another test' in capsys.readouterr().err


@pytest.mark.parametrize('hook', [None, dict(draw=False), dict(type='SegVisualizationHook')])
def test_painting_needs_no_hook_in_the_config(hook, trained, here):
    options = {'default_hooks.visualization': hook}
    run = Run.open(trained.file, trained.checkpoint, options=options)
    config = prepare_test(run, show_dir='painted', options=options)
    visualization = config.default_hooks.visualization
    assert visualization.type == 'SegVisualizationHook' and visualization.draw


def test_tta_leaves_the_trainings_config_alone(trained, here):
    dumped = (trained.work_dir / 'tiny.py').read_text()
    trained.run('test', trained.file, trained.checkpoint, '--work-dir', trained.work_dir, '--tta')
    assert (trained.work_dir / 'tiny.py').read_text() == dumped
    assert 'SegTTAModel' in (trained.work_dir / 'test' / 'tiny.py').read_text()
    assert 0 <= _metrics(trained.work_dir / 'test')['mIoU'] <= 100


def test_the_trainings_own_work_dir_is_never_used(trained, tmp_path):
    files = trained.file, trained.checkpoint
    assert prepare_test(Run.open(*files)).work_dir == 'work_dirs/tiny/test'
    assert prepare_test(Run.open(trained.work_dir)).work_dir == str(trained.work_dir / 'test')
    (tmp_path / 'last_checkpoint').touch()
    run = Run.open(*files)
    assert prepare_test(run, work_dir=str(tmp_path)).work_dir == str(tmp_path / 'test')


def test_out_reaches_the_evaluators_that_write(cct, trained):
    dump = dict(type='DumpResults', out_file_path='a.pkl')
    cct.config.test_evaluator = [dump, cct.config.test_evaluator]
    config = prepare_test(Run.open(cct.write(), trained.checkpoint), out='png')
    assert config.test_evaluator[1].output_dir == 'png'
    assert 'output_dir' not in config.test_evaluator[0]
    assert 'keep_results' not in config.test_evaluator[1]  # an argument of Cityscapes' alone
    cct.config.test_evaluator = dump
    with pytest.raises(UserError, match='--out needs a test_evaluator of type IoUMetric'):
        prepare_test(Run.open(cct.write(), trained.checkpoint), out='png')


@pytest.mark.parametrize(
    ('key', 'arguments'),
    [
        ('test_dataloader', {}),
        ('tta_pipeline', {'tta': True}),
        ('tta_model', {'tta': True}),
        ('visualizer', {'show_dir': 'painted'}),
    ],
)
def test_a_config_that_lacks_something_is_named(cct, trained, key, arguments):
    cct.config.pop(key)
    with pytest.raises(UserError, match=rf'tiny.py: no {key}; expected'):
        prepare_test(Run.open(cct.write(), trained.checkpoint), **arguments)


def test_two_gloo_processes_give_one_process_metrics(trained, here):
    trained.run('test', trained.file, trained.checkpoint, '--work-dir', here / 'one')
    done = trained.shell(
        'bash', trained.tools / 'dist_test.sh', trained.file, trained.checkpoint, 2,
        '--work-dir', here / 'two',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = _metrics(here / 'one'), _metrics(here / 'two')
    assert one['mIoU'] == pytest.approx(two['mIoU'])


@pytest.mark.skipif(not os.path.isdir('/proc/self/task'), reason='needs the names of threads')
def test_no_thread_of_the_group_outlives_a_distributed_run(trained, here):
    # It could let go of a tensor while the interpreter ends, which aborts the process.
    code = (
        'import atexit, pathlib, runpy, sys\n'
        "files = lambda: pathlib.Path('/proc/self/task').glob('*/comm')\n"
        "atexit.register(lambda: print('left:', {file.read_text() for file in files()}))\n"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    one = 'RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT'
    done = trained.shell(
        'bash', '-c', f'{one} exec "$@"', '', 'python', '-c', code, trained.tools / 'test.py',
        trained.file, trained.checkpoint, '--launcher', 'pytorch', '--work-dir', here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    left = done.stdout.partition('left:')[2]
    assert left and 'gloo' not in left
