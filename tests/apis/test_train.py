"""Where a training writes, and what it goes on from."""

import shutil

import pytest
from mmengine.config import Config

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import next_commands, prepare_training, train
from mmseg_cct.errors import UserError


@pytest.fixture
def finished(cct, trained):
    """The work directory of a finished training."""
    return shutil.copytree(trained.work_dir, cct.folder / 'work')


def test_resume_goes_on_from_the_latest_checkpoint(cct, finished):
    config = prepare_training(str(cct.file))
    assert config.work_dir == 'work_dirs/tiny' and not config.get('resume')
    options = {'train_cfg.max_iters': 7, 'experiment_name': 'resumed'}
    config = prepare_training(
        str(cct.file), Request(work_dir='work', resume='auto', options=options)
    )
    assert (config.load_from, config.resume) == ('work/iter_6.pth', True)
    assert config.param_scheduler[0].end == 7
    train(config)
    assert (finished / 'last_checkpoint').read_text().endswith('iter_7.pth')
    dumped = Config.fromfile(finished / 'tiny.py')
    assert not dumped.resume  # another training with it starts anew
    again = prepare_training(
        'work/tiny.py', Request(work_dir='work', resume='auto', options=options)
    )
    assert again.resume


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('default_hooks.checkpoint.filename_tmpl', '../tiny.py'),
        ('visualizer.save_dir', '{data}/images/new'),
        ('val_evaluator.output_dir', '{data}/val_masks'),
    ],
)
def test_no_setting_writes_over_what_is_read(cct, key, value):
    with pytest.raises(UserError) as error:
        prepare_training(str(cct.file), Request(options={key: value.format(data=cct.data)}))
    assert error.value.problems[0].key.startswith(key)


@pytest.mark.parametrize(
    ('arguments', 'key'),
    [
        (dict(work_dir='wrok', resume='auto'), '--work-dir wrok'),  # mistyped: nothing is there
        (dict(options=dict(train_cfg=None)), 'tiny.py'),
        (dict(work_dir='tiny.py'), '--work-dir'),
        (dict(work_dir='work'), '--work-dir work'),  # holds a training
        (dict(work_dir='.'), '.'),  # holds the config, which the run would overwrite
        (dict(work_dir='link'), 'link'),
    ],
)
@pytest.mark.usefixtures('finished')
def test_what_cannot_be_trained_is_named(cct, arguments, key):
    (cct.folder / 'link').symlink_to(cct.folder)
    with pytest.raises(UserError) as error:
        prepare_training(cct.file.name, Request(**arguments))
    assert str(error.value.problems[0].key) == key


def test_the_next_commands_use_and_judge_what_is_trained(cct, finished):
    config = prepare_training(str(cct.file), Request(work_dir='work', resume='auto'))
    predict, report, batch = next_commands(config)
    assert predict.endswith(' predict work IMAGES --out work/predictions')
    assert report.endswith(' report work=work --out work/report')
    assert batch.endswith(' next-batch work --out work/batch')
    config.model.domains = dict(camvid={})
    assert all('--domain camvid' in command for command in next_commands(config))
    config.work_dir = 'new'  # no checkpoint
    assert not next_commands(config)
