"""The scenes of the weakly supervised study as files, and the configs on them."""

import json
import sys

import numpy as np
import pytest
import weak_scenes
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from PIL import Image

import mmseg_cct.plugin  # noqa: F401 (registers the components)

PARTS = {'train': [0, 1, 1000, 1001, 1002], 'val': [10000], 'test': [20000, 20001]}


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(weak_scenes, 'LABELED', PARTS['train'][:2])
    monkeypatch.setattr(weak_scenes, 'UNLABELED', PARTS['train'][2:])
    monkeypatch.setattr(weak_scenes, 'PARTS', PARTS)
    monkeypatch.setattr(sys, 'argv', ['weak_scenes.py', str(tmp_path / 'scenes')])
    weak_scenes.main()
    return tmp_path / 'scenes'


def test_the_scenes_are_those_of_the_demo(out, project_root):
    init_default_scope('mmseg')
    demo = Config.fromfile(project_root / 'configs/demo/cct_shapes.py')
    for part, loader in (('val', demo.val_dataloader), ('test', demo.test_dataloader)):
        scene = DATASETS.build(loader.dataset)[0]
        image = np.asarray(Image.open(out / f'images/{part}/{PARTS[part][0]}.png'))
        mask = np.asarray(Image.open(out / f'masks/{part}/{PARTS[part][0]}.png'))
        # the pipeline gives BGR, a file RGB
        assert (image[..., ::-1] == scene['inputs'].permute(1, 2, 0).numpy()).all()
        assert (mask == scene['data_samples'].gt_sem_seg.data[0].numpy()).all()


def test_training_with_and_without_pseudo_labels_differs_in_them_alone(out):
    init_default_scope('mmseg')
    labels = out / 'pseudo/labels'
    labels.mkdir(parents=True)
    for number in PARTS['train'][2:]:
        Image.fromarray(np.full((48, 48), 3, np.uint8)).save(labels / f'{number:05d}.png')
    plain, weak = (Config.fromfile(out / name) for name in ('cct.py', 'cct-weak.py'))
    for config, has_labels in ((plain, False), (weak, True)):
        dataset = config.train_dataloader.dataset
        assert len(DATASETS.build(dataset.labeled)) == 2
        unlabeled = DATASETS.build(dataset.unlabeled)
        assert len(unlabeled) == 3
        assert ('pseudo_sem_seg' in unlabeled[0]['data_samples']) == has_labels
        assert len(DATASETS.build(config.val_dataloader.dataset)) == 1
        assert len(DATASETS.build(config.test_dataloader.dataset)) == 2
    assert weak.model.auxiliary_head.pop('loss_weak').loss_weight == weak.custom_hooks.pop().end
    assert weak.model == plain.model
    assert weak.custom_hooks == plain.custom_hooks


def test_the_classifier_has_every_image(out):
    config = Config.fromfile(out / 'cam.py')
    for part in ('train', 'val', 'test'):
        data = [
            dict(img_path=path.name, gt_label=[0])
            for path in sorted((out / 'images' / part).iterdir())
        ]
        names = weak_scenes.ShapesDataset.METAINFO['classes'][1:]
        text = json.dumps(dict(metainfo=dict(classes=names), data_list=data))
        (out / f'{part}.json').write_text(text)
    registry = pytest.importorskip('mmpretrain.registry', reason='extra `weak`')
    init_default_scope('mmpretrain')
    loaders = (config.train_dataloader, config.val_dataloader, config.test_dataloader)
    assert [len(registry.DATASETS.build(loader.dataset)) for loader in loaders] == [5, 1, 2]
