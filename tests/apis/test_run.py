"""A run is opened by its folder, or by a config and a checkpoint."""

import copy
import json
import shutil

import numpy as np
import pytest
import torch
import world

from mmseg_cct.apis.prediction import predict_images
from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.publish import publish
from mmseg_cct.apis.report.report import write_report
from mmseg_cct.apis.run import Run, read_scalars
from mmseg_cct.apis.test import prepare_test
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.errors import UserError
from mmseg_cct.labelling.next_batch import BatchRequest, next_batch


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of the trained run; `last_checkpoint` in it names the original."""
    return shutil.copytree(trained.work_dir, tmp_path / 'copied')


def test_a_folder_is_its_config_its_last_checkpoint_its_log_and_its_labels(copied, trained):
    run = Run.open(copied)
    assert (run.name, run.checkpoint) == ('copied', str(copied / 'iter_6.pth'))
    assert run.config.model == trained.config.model
    assert run.content.keys() == {'meta', 'state_dict'}
    assert [values['step'] for values in run.scalars if 'loss' in values] == [*range(1, 7)]
    assert len(run.labels.labeled) == 3


def test_an_earlier_checkpoint_has_the_log_up_to_its_iteration(copied):
    steps = [values['step'] for values in Run.open(copied / 'iter_2.pth').scalars]
    assert max(steps) == 2


def test_a_checkpoint_with_a_config_is_a_run_and_its_text_is_no_config(copied, trained):
    content = trained.load(copied / 'iter_2.pth')
    content['meta']['cfg'] = 'import os'
    torch.save(content, copied / 'iter_2.pth')
    run = Run.open(trained.file, copied / 'iter_2.pth', options={'randomness.seed': 7}, name='a')
    assert (run.name, run.checkpoint) == ('a', str(copied / 'iter_2.pth'))
    assert run.config.randomness.seed == 7
    run = Run.open(copied / 'iter_2.pth')
    assert type(run.load_model()).__name__ == trained.config.model.type


def without(*patterns):
    return lambda folder: [path.unlink() for each in patterns for path in folder.glob(each)]


@pytest.mark.parametrize(
    ('edit', 'place', 'key'),
    [
        (lambda folder: (folder / 'b.py').touch(), '', ''),  # which one?
        (without('*.pth', 'last_checkpoint'), '', ''),
        (without(), 'iter_9.pth', '/iter_9.pth'),
        (without(), '../copid', '/../copid'),
    ],
)
def test_what_is_no_run_is_named(copied, edit, place, key):
    edit(copied)
    with pytest.raises(UserError) as error:
        Run.open(copied / place)
    assert str(error.value.problems[0].key) == f'{copied}{key}'


def write_log(work_dir, start, *lines):
    folder = work_dir / start / 'vis_data'
    folder.mkdir(parents=True)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / 'scalars.json').write_text('\n'.join(lines))


def test_scalars_of_a_resumed_run_replace_what_it_repeats_and_a_line_that_a_kill_cut(
    tmp_path, messages
):
    lines = dict(step=1, lr=1), dict(step=2, lr=9), dict(step=2, mIoU=5.0)
    write_log(tmp_path, '20260101_000000', lines[0], dict(step=2, lr=1), '{"step": 2, "l')
    write_log(tmp_path, '20260102_000000', *lines[1:])
    assert read_scalars(tmp_path) == [*lines]
    (line,) = messages
    assert line.endswith('scalars.json, line 3: damaged; left out')


def load_model(config, checkpoint, *args):
    return Run(config, checkpoint, '').load_model(*args)


@pytest.fixture
def bare(trained, tmp_path):
    """The checkpoint's weights without their meta and auxiliary decoders."""
    state = torch.load(trained.checkpoint, weights_only=False)['state_dict']
    kept = {name: value for name, value in state.items() if 'auxiliary_head' not in name}
    torch.save(dict(state_dict=kept), tmp_path / 'bare.pth')
    return str(tmp_path / 'bare.pth')


def test_classes_without_names_get_some(trained, bare):
    meta = load_model(copy.deepcopy(trained.config), bare, 'cpu').dataset_meta
    assert meta['classes'] == ('class 0', 'class 1', 'class 2')
    assert meta['palette'] == [*map(list, class_colors(meta['classes']))]
    meta = load_model(copy.deepcopy(trained.config), str(trained.checkpoint), 'cpu').dataset_meta
    assert tuple(meta['classes']) == ('ground', 'thing', 'other')
    assert np.array_equal(meta['palette'], trained.palette)


def test_a_checkpoint_of_other_classes_is_refused(trained):
    config = copy.deepcopy(trained.config)
    config.model.decode_head.num_classes = 5
    with pytest.raises(UserError, match='trained on 3 classes'):
        load_model(config, str(trained.checkpoint), 'cpu')


def test_the_weights_that_a_training_started_from_are_not_fetched(trained, bare):
    """Of timm they are without any setting; offline, it would try for a minute."""
    config = copy.deepcopy(trained.config)
    config.model.backbone = dict(type='TIMMBackbone', model_name='resnet18', out_indices=(0,))
    with pytest.raises(UserError, match='backbone'):  # the checkpoint is of another model
        load_model(config, bare)
    assert 'pretrained' not in config.model.backbone  # whose run it is may have other uses for it


# What is done with a run, a folder of images and one to write to.
USES = dict(
    predict=lambda run, photos, out: predict_images(run, photos, str(out)),
    predictor=lambda run, photos, out: [*run.predictor([f'{photos}/a.png'])],
    report=lambda run, photos, out: write_report([run], out),
    test=lambda run, photos, out: prepare_test(run, Request(work_dir=str(out), tta=True)),
    next_batch=lambda run, photos, out: next_batch(run, BatchRequest(str(out), photos, number=1)),
    publish=lambda run, photos, out: publish(run, str(out / 'a.pth')),
)


def test_whatever_is_done_with_a_run_it_stays_the_same(trained, tmp_path):
    photos = str(world.write_photos(tmp_path / 'photos', {'a.png': (32, 40), 'b.png': (24, 32)}))
    run = Run.open(trained.work_dir)
    config, state = run.config.to_dict(), copy.deepcopy(run.content['state_dict'])
    for name, use in USES.items():
        use(run, photos, tmp_path / name)
        assert run.config.to_dict() == config, name
        assert all(torch.equal(run.content['state_dict'][key], state[key]) for key in state), name
