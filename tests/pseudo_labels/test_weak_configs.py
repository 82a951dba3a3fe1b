import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import save
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.runner import Runner

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.image_files import write_list
from mmseg_cct.pseudo_labels.settings import read_settings

CONFIGS = Path(__file__).parents[2] / 'configs'
WEAK_RAMP = dict(type='RampUpHook', attribute='auxiliary_head.loss_weak.loss_weight')
WEAK_RAMP |= dict(schedule='exp', fraction=0.1)


def parse(name):
    return load_config(str(CONFIGS / name), {})


def write_images(images, masks, names):
    for name in names:
        save(images / f'{name}.jpg', np.random.default_rng(0).integers(0, 256, (48, 40, 3), 'u1'))
        save(masks / f'{name}.png', np.zeros((48, 40), np.uint8))


def write_voc(tmp_path):
    root = tmp_path / 'data/VOCdevkit/VOC2012'
    names = [f'2007_00000{index}' for index in range(4)]
    write_images(root / 'JPEGImages', root / 'SegmentationClassAug', names)
    (root / 'Annotations').mkdir()
    for name, label in zip(names, ('dog', 'person', 'dog', 'tvmonitor')):
        objects = f'<object><name>{label}</name><difficult>0</difficult></object>'
        (root / f'Annotations/{name}.xml').write_text(f'<annotation>{objects}</annotation>')
    write_list(root / 'ImageSets/Segmentation/val.txt', names[3:])
    write_list(tmp_path / 'data/splits/voc/1464_labeled.txt', names[:1])
    write_list(tmp_path / 'data/splits/voc/1464_unlabeled.txt', names[1:3])
    return [(14,), (11,)], 0


def write_camvid(tmp_path):
    labels = tmp_path / 'work_dirs/weak_labels'
    labels.mkdir(parents=True)
    metainfo = dict(classes=parse('weak/cam_mbv2_camvid.py').classes)
    for split, names in dict(train='ab', val='c', test='d').items():
        folders = (tmp_path / f'data/camvid/{folder}/{split}' for folder in ('images', 'masks'))
        write_images(*folders, names)
        listed = [dict(img_path=f'{name}.jpg', gt_label=[0, 8]) for name in names]
        content = dict(metainfo=metainfo, data_list=listed)
        (labels / f'{split}.json').write_text(json.dumps(content))
    shutil.copy(labels / 'train.json', labels / '50_unlabeled.json')
    return [(0, 8), (0, 8)], None


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'write'), [('cam_r50_voc.py', write_voc), ('cam_mbv2_camvid.py', write_camvid)]
)
def test_the_classifier_reads_its_layout_and_makes_a_step(name, write, tmp_path, monkeypatch):
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    monkeypatch.chdir(tmp_path)
    labels, background = write(tmp_path)
    config = parse(f'weak/{name}')  # its lists are found from the working directory
    assert config.param_scheduler.end == config.train_cfg.max_iters
    init_default_scope(config.default_scope)
    from mmpretrain.registry import MODELS

    torch.manual_seed(0)
    del config.model.backbone['init_cfg']
    model = MODELS.build(config.model)
    # output stride 16
    assert model.extract_feat(torch.zeros(2, 3, 64, 96), stage='backbone')[-1].shape[-2:] == (4, 6)
    for step in (*config.train_pipeline, *config.test_pipeline):  # quicker
        step.update({key: 64 for key in ('crop_size',) if key in step})
        step.update({key: (64, 64) for key in ('scale',) if key in step})
    for part in config.train_dataloader.dataset.get('datasets', [config.train_dataloader.dataset]):
        part.pipeline = config.train_pipeline
    config.val_dataloader.dataset.pipeline = config.test_pipeline
    config.train_dataloader.update(batch_size=2, num_workers=0, persistent_workers=False)
    loader = Runner.build_dataloader(config.train_dataloader, seed=0)
    optim_wrapper = build_optim_wrapper(model, config.optim_wrapper)
    assert {group['lr'] for group in optim_wrapper.param_groups} == {1e-2, 1e-1}
    names = tuple(loader.dataset.metainfo['classes'])
    assert model.head.fc.weight.shape[0] == len(names)
    losses = model.train().train_step(next(iter(loader)), optim_wrapper)
    assert 1 < losses['loss'] < 100

    config.val_dataloader.update(num_workers=0)
    (sample,) = model.eval().val_step(next(iter(Runner.build_dataloader(config.val_dataloader))))
    assert sample.pred_score.shape == (model.head.num_classes,)

    settings = read_settings(config)
    assert [image.class_ids for image in settings.images] == labels
    assert (settings.background, settings.thresholds) == (background, (0.05, 0.30))
    assert settings.classes[background is not None :] == names


def test_a_weak_config_ramps_up_the_loss_of_the_pseudo_labels_that_it_loads():
    for name in ('cct_r50_voc_1464-weak9k.py', 'cct_mbv2_camvid_50-weak.py'):
        config = parse(f'weak/{name}')
        loss = config.model.auxiliary_head.loss_weak
        assert loss.to_dict() == dict(type='WeakCrossEntropy', loss_weight=0.4)
        assert config.default_hooks.weak_ramp_up.to_dict() == WEAK_RAMP
        steps = [s.type for s in config.train_dataloader.dataset.unlabeled.pipeline]
        assert (steps[1], steps[-1]) == ('LoadPseudoLabels', 'PackPseudoLabels')


def test_the_classifiers_weights_go_on_into_the_segmentor():
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    from mmpretrain.registry import MODELS as CLASSIFIERS
    from mmseg.registry import MODELS

    for classifier, segmentor in (
        ('cam_mbv2_camvid.py', 'cct_mbv2_camvid_50-weak.py'),
        ('cam_r50_voc.py', 'cct_r50_voc_1464-weak9k.py'),
    ):
        shapes = []
        for name, registry in ((classifier, CLASSIFIERS), (segmentor, MODELS)):
            config = parse(f'weak/{name}')
            config.model.backbone.pop('init_cfg')
            init_default_scope(config.default_scope)
            backbone = registry.build(config.model.backbone)
            shapes.append({key: value.shape for key, value in backbone.state_dict().items()})
        assert shapes[0] == shapes[1]
