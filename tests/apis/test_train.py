"""Where a training writes, and what it goes on from."""

import os
import shutil

import pytest
from mmengine.config import Config

from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.errors import UserError


@pytest.fixture
def finished(cct, trained):
    """The work directory of a finished training."""
    return shutil.copytree(trained.work_dir, cct.folder / 'work')


def test_resume_goes_on_from_the_latest_checkpoint(cct, finished):
    config = prepare_training(str(cct.file))
    assert config.work_dir == 'work_dirs/tiny' and not config.get('resume')
    options = {'train_cfg.max_iters': 7, 'experiment_name': 'resumed'}
    config = prepare_training(str(cct.file), work_dir='work', resume='auto', options=options)
    assert (config.load_from, config.resume) == (None, True)
    assert config.param_scheduler[0].end == 7
    train(config)
    assert (finished / 'last_checkpoint').read_text().endswith('iter_7.pth')
    dumped = Config.fromfile(finished / 'tiny.py')
    assert not dumped.resume  # another training with it starts anew
    again = prepare_training('work/tiny.py', work_dir='work', resume='auto', options=options)
    assert again.resume


def test_a_mistyped_work_directory_resumes_nothing(cct):
    with pytest.raises(UserError) as error:
        prepare_training(str(cct.file), work_dir='wrok', resume='auto')
    assert error.value.problems[0].key == '--work-dir wrok'


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('default_hooks.checkpoint.filename_tmpl', '../tiny.py'),
        ('default_hooks.logger.out_dir', '{data}/images'),
        ('visualizer.save_dir', '{data}/images/new'),
        ('visualizer.vis_backends.0.config_save_file', '../../../tiny.py'),
        ('val_evaluator.output_dir', '{data}/val_masks'),
    ],
)
def test_no_setting_writes_over_what_is_read(cct, key, value):
    with pytest.raises(UserError) as error:
        prepare_training(str(cct.file), options={key: value.format(data=cct.data)})
    assert error.value.problems[0].key.startswith(key)


def test_a_config_without_training_is_named(cct):
    cct.config.pop('train_cfg')
    with pytest.raises(UserError, match=r'tiny.py: no train_cfg; expected a config for training'):
        prepare_training(str(cct.write()))


@pytest.mark.parametrize('options', [{}, {'model.decode_head.num_classes': 7}])
def test_a_finished_training_is_not_overwritten(cct, finished, options):
    files = [path for path in finished.rglob('*') if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    with pytest.raises(UserError) as error:
        prepare_training(str(cct.file), work_dir='work', options=options)
    assert str(error.value) == (
        '--work-dir work: holds a training up to iter_6.pth; expected --resume, or another '
        'folder, for a next round of labels --work-dir work-round2'
    )
    assert before == {path: path.read_bytes() for path in files}


@pytest.mark.parametrize('resume', [None, 'auto'])
def test_the_config_is_not_overwritten(cct, resume):
    (cct.folder / 'link').symlink_to(cct.folder)
    for work_dir in ('.', str(cct.folder), 'link'):
        with pytest.raises(UserError, match=r': holds .*tiny.py, which the run would'):
            prepare_training(str(cct.file), work_dir=work_dir, resume=resume)


def test_the_learning_rate_is_scaled_on_demand(cct):
    with pytest.raises(UserError, match=r'no auto_scale_lr\.base_batch_size; expected the batch'):
        prepare_training(str(cct.file), auto_scale_lr=True)
    options = {'auto_scale_lr.base_batch_size': 10}
    config = prepare_training(str(cct.file), auto_scale_lr=True, options=options)
    assert config.auto_scale_lr == dict(base_batch_size=10, enable=True)


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        (os.fsdecode(b'w\xe9'), r"--work-dir 'w\\udce9': expected a name in UTF-8"),
        ('tiny.py', r'--work-dir: tiny\.py is a file; expected a folder'),
    ],
)
def test_a_work_dir_that_cannot_be_is_named(cct, name, message):
    with pytest.raises(UserError, match=message):
        prepare_training(str(cct.file), work_dir=name)
