import re
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.registry import HOOKS
from mmseg.registry import MODELS
from teacher_training import train

from mmseg_cct.datasets import ShapesDataset
from mmseg_cct.errors import UserError

CLASSES = ShapesDataset.METAINFO['classes']
HEAD = dict(
    type='FCNHead', in_channels=8, in_index=1, channels=4, num_convs=1, num_classes=7,
    norm_cfg=dict(type='BN'),
)  # fmt: skip


def large(folder, classes=CLASSES, **preprocessor):
    """The files of a trained network without neck and auxiliary decoders; gives its hook too."""
    model = tiny.model_config(type='EncoderDecoder', neck=None, auxiliary_head=None)
    model['decode_head'] = HEAD
    model['data_preprocessor'].update(preprocessor)
    torch.manual_seed(4)
    teacher = MODELS.build(model)
    config, checkpoint = str(folder / 'large.py'), str(folder / 'large.pth')
    Config(dict(model=model)).dump(config)
    content = dict(state_dict=teacher.state_dict(), meta=dict(dataset_meta=dict(classes=classes)))
    torch.save(content, checkpoint)
    return teacher, dict(type='FixedTeacherHook', run=config, checkpoint=checkpoint)


@pytest.mark.slow
def test_it_predicts_the_targets_and_stays_as_it_is(tmp_path):
    expected, hook = large(tmp_path)
    recorder, runner = train(tmp_path / 'run', hook)
    assert recorder.training == [(True, False)] * 4
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        seg_logits = expected.eval()(images)
    assert torch.equal(runner.model.predict_target(images, ()), seg_logits)
    names = torch.load(tmp_path / 'run/iter_4.pth', weights_only=False)['state_dict'].keys()
    assert not [name for name in names if 'teacher' in name]


@pytest.mark.parametrize(
    ('key', 'settings'),
    [
        ('classes', dict(classes=CLASSES[::-1])),
        ('model.data_preprocessor.mean', dict(mean=[0.0] * 3)),
    ],
)
def test_one_of_other_classes_or_colours_is_refused(key, settings, tmp_path):
    _, hook = large(tmp_path, **settings)
    loader = SimpleNamespace(dataset=SimpleNamespace(metainfo=dict(classes=CLASSES)))
    student = Config(dict(model=tiny.model_config()))
    runner = SimpleNamespace(seed=0, train_dataloader=loader, cfg=student)
    with pytest.raises(UserError) as error:
        HOOKS.build(hook).before_train(runner)
    assert error.value.problems[0].key == f'{hook["checkpoint"]}: {key}'


@pytest.mark.slow
def test_the_file_on_the_page_trains(installed, cct, trained, project_root):
    page = (project_root / 'docs' / 'methods.md').read_text(encoding='utf-8')
    ((_, code),) = re.findall(r'title="(large_teacher\.py)"\n(.*?)^```', page, re.M | re.S)
    assert code.count("'work_dirs/cct-strong_r50_mine'") == 1
    file = cct.folder / 'large_teacher.py'
    file.write_text(code.replace('work_dirs/cct-strong_r50_mine', str(trained.work_dir)))
    cct.train('small', options={'method': str(file), 'train_cfg.max_iters': 2})
    names = cct.load(cct.folder / 'small/iter_2.pth')['state_dict']
    assert names and not [name for name in names if 'teacher' in name]
    assert 'strong.unweighted' in str(cct.scalars(cct.folder / 'small'))
