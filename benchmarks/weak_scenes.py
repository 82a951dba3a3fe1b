#!/usr/bin/env python
"""Writes the demo's scenes as files, with the configs of a weakly supervised study on them.

DIR gets images, masks and lists, and `cam.py` (the classifier), `cct.py` (the demo's CCT) and
`cct-weak.py` (the same with pseudo labels from DIR/pseudo). docs/weak_labels.md has the commands.

Example:
    python benchmarks/weak_scenes.py work_dirs/scenes
"""

import argparse
from pathlib import Path

import cv2
from mmengine.config import Config

from mmseg_cct.datasets import ShapesDataset
from mmseg_cct.datasets.transforms import DrawShapesScene

CONFIGS = Path(__file__).resolve().parents[1] / 'configs'
SIZE = 48
# Numbers of the scenes, those of configs/_base_/datasets/shapes.py.
LABELED, UNLABELED = range(12), range(1000, 1600)
PARTS = {
    'train': [*LABELED, *UNLABELED],
    'val': range(10000, 10100),
    'test': range(20000, 20200),
}

CAM = """_base_ = {base!r}
root = {root!r}
model = dict(
    backbone={backbone},
    head=dict(in_channels=32, num_classes=6),
)
load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
train_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='MultiLabelDataset',
        ann_file=f'{{root}}/train.json',
        data_prefix=f'{{root}}/images/train',
        pipeline=[load, dict(type='RandomFlip', prob=0.5), pack],
    ),
)
val_dataloader, test_dataloader = (
    dict(
        batch_size=50,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            type='MultiLabelDataset',
            ann_file=f'{{root}}/{{part}}.json',
            data_prefix=f'{{root}}/images/{{part}}',
            pipeline=[load, pack],
        ),
    )
    for part in ('val', 'test')
)
max_iters = 500
optim_wrapper = dict(_delete_=True, optimizer=dict(type='AdamW', lr=5e-3, weight_decay=1e-4))
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=250))
pseudo_labels = dict(
    images=dict(
        type='MultiLabelDataset',
        ann_file=f'{{root}}/12_unlabeled.json',
        data_prefix=f'{{root}}/images/train',
    ),
    segmentation=dict(
        type='FolderDataset',
        data_root=root,
        image_dir='images/train',
        mask_dir='masks/train',
        classes={classes!r},
        subset='labeled',
        ann_file=f'{{root}}/12_unlabeled.txt',
    ),
    background='background',
    input_size=None,
    scales=(1.0, 1.5, 2.0),
)
"""

CCT = """_base_ = {base!r}
root = {root!r}
folder = dict(type='FolderDataset', data_root=root, classes={classes!r})
load, masks = dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')
pack = dict(type='PackSegInputs')
augment = [_base_.random_resize, _base_.crop, _base_.flip]
train_dataloader = dict(
    dataset=dict(
        labeled=dict(
            _delete_=True,
            **folder,
            image_dir='images/train',
            mask_dir='masks/train',
            subset='labeled',
            ann_file=f'{{root}}/12_labeled.txt',
            pipeline=[
                load,
                masks,
                _base_.random_resize,
                dict(_base_.crop, cat_max_ratio=0.75),
                _base_.flip,
                pack,
            ],
        ),
        unlabeled=dict(
            _delete_=True,
            **folder,
            image_dir='images/train',
            subset='unlabeled',
            ann_file=f'{{root}}/12_unlabeled.txt',
            pipeline=[load, *augment, pack],
        ),
    )
)
val_dataloader, test_dataloader = (
    dict(
        dataset=dict(
            _delete_=True,
            **folder,
            image_dir=f'images/{{part}}',
            mask_dir=f'masks/{{part}}',
            subset='labeled',
            pipeline=[load, masks, pack],
        )
    )
    for part in ('val', 'test')
)
"""

WEAK = """_base_ = './cct.py'
model = dict(auxiliary_head=dict(loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4)))
train_dataloader = dict(
    dataset=dict(
        unlabeled=dict(
            pipeline=[
                _base_.load,
                dict(
                    type='LoadPseudoLabels',
                    image_dir=f'{{_base_.root}}/images/train',
                    label_dir=f'{{_base_.root}}/pseudo/labels',
                ),
                *_base_.augment,
                dict(type='PackPseudoLabels'),
            ]
        )
    )
)
custom_hooks = [
    *_base_.custom_hooks,
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_weak.loss_weight',
        schedule='exp',
        start=0.0,
        end=0.4,
        fraction=0.1,
    ),
]
"""


def write_scenes(out: Path) -> None:
    """Draws the scenes of all parts, and their lists."""
    draw = DrawShapesScene()
    for part, numbers in PARTS.items():
        for kind in ('images', 'masks'):
            (out / kind / part).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            scene = draw(dict(scene=(0, number, SIZE), seg_fields=[]))
            cv2.imwrite(str(out / f'images/{part}/{number:05d}.png'), scene['img'])
            cv2.imwrite(str(out / f'masks/{part}/{number:05d}.png'), scene['gt_seg_map'])
    for name, numbers in (('labeled', LABELED), ('unlabeled', UNLABELED)):
        lines = ''.join(f'{number:05d}\n' for number in numbers)
        (out / f'12_{name}.txt').write_text(lines, encoding='utf-8')


def write_configs(out: Path) -> None:
    """Writes the three configs."""
    classes, root = ShapesDataset.METAINFO['classes'], str(out)
    demo = Config.fromfile(CONFIGS / 'demo/cct_shapes.py')
    backbone = dict(demo.model.backbone, type='mmseg.ResNetV1c')
    bases = {'cam.py': CONFIGS / '_base_/classifier.py', 'cct.py': CONFIGS / 'demo/cct_shapes.py'}
    texts = {'cam.py': CAM, 'cct.py': CCT, 'cct-weak.py': WEAK}
    for name, text in texts.items():
        base = str(bases.get(name, ''))
        (out / name).write_text(
            text.format(base=base, root=root, classes=classes, backbone=backbone),
            encoding='utf-8',
        )


def main() -> None:
    """Writes everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('out', type=Path, metavar='DIR', help='folder to write to')
    out = parser.parse_args().out.resolve()
    write_scenes(out)
    write_configs(out)
    print(f'wrote {out}')


if __name__ == '__main__':
    main()
