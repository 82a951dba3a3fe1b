"""Where a training writes, and what it goes on from."""

import shutil

import pytest
import tiny
import torch
from mmengine.config import Config
from mmseg.registry import MODELS

from mmseg_cct.apis import train as train_module
from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import commands_after_training, prepare_training, train
from mmseg_cct.errors import UserError


@pytest.fixture
def finished(cct, trained):
    """The work directory of a finished training."""
    return shutil.copytree(trained.work_dir, cct.folder / 'work')


def test_resume_goes_on_from_the_latest_checkpoint(cct, finished):
    with pytest.raises(UserError, match='--work-dir work: holds a training up to iter_6'):
        prepare_training(str(cct.file), Request(work_dir='work'))
    config = prepare_training(str(cct.file))
    assert config.work_dir == 'work_dirs/tiny' and not config.get('resume')
    options = {'train_cfg.max_iters': 7, 'experiment_name': 'resumed'}
    config = prepare_training(
        str(cct.file), Request(work_dir='work', resume='auto', options=options)
    )
    assert (config.load_from, config.resume) == (None, True)
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
    ],
)
def test_what_cannot_be_trained_is_named(cct, arguments, key):
    with pytest.raises(UserError) as error:
        prepare_training(cct.file.name, Request(**arguments))
    assert error.value.problems[0].key == key


def test_the_config_is_not_overwritten(cct):
    (cct.folder / 'link').symlink_to(cct.folder)
    for work_dir in ('.', 'link'):
        with pytest.raises(UserError, match=r': holds .*tiny.py, which the run would'):
            prepare_training(str(cct.file), Request(work_dir=work_dir))


def test_the_end_tells_the_next_commands_where_a_segmentor_may_be_tested(tmp_path, monkeypatch):
    model, lines = MODELS.build(tiny.model_config()), []
    monkeypatch.setattr(train_module, 'run_config', lambda *_: model)
    monkeypatch.setattr(train_module, 'say', lines.append)
    config = Config(dict(model={}, test_dataloader={}, launcher='none', work_dir=str(tmp_path)))
    train(config)
    assert not lines  # no checkpoint
    (tmp_path / 'iter_4.pth').touch()
    train(config)
    (commands,) = lines
    assert commands.startswith('Next:') and f'{tmp_path.name}={tmp_path}' in commands
    model = torch.nn.Linear(1, 1)  # such as a classifier
    train(config)
    assert len(lines) == 1


def test_a_trained_model_is_used_and_judged_as_is_one_of_its_domains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    predict, report, batch = commands_after_training(tmp_path, 'cct', has_pool=True)
    assert batch.endswith(' next-batch . --out batch')
    assert ' predict . IMAGES' in predict and report.endswith(' report cct=. --out report')
    for command in commands_after_training(tmp_path, 'cct', 'camvid'):
        assert '--domain camvid' in command
