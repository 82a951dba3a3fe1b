"""The scenes of the weakly supervised study as files, and the configs on them."""

import json

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from PIL import Image
from weak_scenes import draw_scenes

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.config.load import load_config

PARTS = dict(train=[1000, 1001, 1002], val=[10000], test=[20000, 20001])


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_scenes, 'LABELED', [0, 1])
    monkeypatch.setattr(draw_scenes, 'UNLABELED', PARTS['train'])
    monkeypatch.setattr(draw_scenes, 'PARTS', PARTS)
    monkeypatch.chdir(tmp_path)
    draw_scenes.write_scenes(tmp_path / 'work_dirs/scenes')
    return tmp_path / 'work_dirs/scenes'


@pytest.fixture
def demo():
    init_default_scope('mmseg')
    return load_config('demo/cct_shapes', {})


def test_the_scenes_are_those_of_the_demo(out, demo):
    for part, loader in (('val', demo.val_dataloader), ('test', demo.test_dataloader)):
        scene = DATASETS.build(loader.dataset)[0]
        image = np.asarray(Image.open(out / f'images/{part}/{PARTS[part][0]}.png'))
        mask = np.asarray(Image.open(out / f'masks/{part}/{PARTS[part][0]}.png'))
        # the pipeline gives BGR, a file RGB
        assert (image[..., ::-1] == scene['inputs'].permute(1, 2, 0).numpy()).all()
        assert (mask == scene['data_samples'].gt_sem_seg.data[0].numpy()).all()


def test_training_with_and_without_pseudo_labels_differs_in_them_alone(out, demo, project_root):
    labels = out / 'pseudo/labels'
    labels.mkdir(parents=True)
    for number in PARTS['train']:
        Image.fromarray(np.full((48, 48), 3, np.uint8)).save(labels / f'{number:05d}.png')
    weak = load_config(str(project_root / 'benchmarks/weak_scenes/cct-weak.py'), {})
    unlabeled, drawn = (config.train_dataloader.dataset.pop('unlabeled') for config in (weak, demo))
    # the same scenes in the same order, and the same augmentation
    assert unlabeled.pipeline[2:-1] == drawn.pipeline[1:-1]
    del unlabeled.pipeline[2:-1], drawn.pipeline[1:-1]
    found, expected = DATASETS.build(unlabeled), DATASETS.build(drawn)
    assert len(found) == 3
    for index, item in enumerate(found):
        assert (item['inputs'] == expected[index]['inputs']).all()
        assert (item['data_samples'].pseudo_sem_seg.data == 3).all()
    del weak.model.auxiliary_head['loss_weak'], weak.default_hooks['weak_ramp_up']
    assert all(weak[key] == value for key, value in demo.items())


def test_the_classifier_has_every_image(out, project_root):
    config = Config.fromfile(project_root / 'benchmarks/weak_scenes/cam.py')
    for part in ('train', 'val', 'test'):
        data = [
            dict(img_path=path.name, gt_label=[0])
            for path in sorted((out / 'images' / part).iterdir())
        ]
        text = json.dumps(dict(metainfo=dict(classes=config.classes[1:]), data_list=data))
        (out / f'{part}.json').write_text(text)
    registry = pytest.importorskip('mmpretrain.registry', reason='extra `weak`')
    init_default_scope('mmpretrain')
    loaders = (config.train_dataloader, config.val_dataloader, config.test_dataloader)
    assert [len(registry.DATASETS.build(loader.dataset)) for loader in loaders] == [5, 1, 2]
