import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from world import run_tool

from mmseg_cct.apis.prediction import predict_images
from mmseg_cct.apis.train import prepare_training
from mmseg_cct.errors import UserError

FIRST = [[10, 20, 30], [200, 0, 0], [0, 200, 0]]
CONFIG = """
default_scope = 'mmseg'
custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)
randomness = dict(seed=0)
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor', size=(32, 32), pad_val=0, seg_pad_val=255,
        mean=[127.0] * 3, std=[60.0] * 3, bgr_to_rgb=True),
    backbone=dict(
        type='ResNet', depth=18, base_channels=4, strides=(1, 1, 2, 1), dilations=(1, 1, 1, 2),
        norm_cfg=dict(type='BN'), norm_eval=False),
    decode_head=dict(
        type='FCNHead', in_channels=32, channels=8, num_convs=1, num_classes=3,
        norm_cfg=dict(type='BN'), loss_decode=dict(type='CrossEntropyLoss')),
    test_cfg=dict(mode='whole'))
train_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'),
    dict(type='Resize', scale=(32, 32)), dict(type='PackSegInputs')]
test_pipeline = [
    dict(type='LoadImageFromFile'), dict(type='Resize', scale=(48, 48), keep_ratio=True),
    dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='TestTimeAug', transforms=[
        [dict(type='Resize', scale_factor=s, keep_ratio=True) for s in (0.75, 1.0)],
        [dict(type='RandomFlip', prob=p, direction='horizontal') for p in (0.0, 1.0)],
        [dict(type='LoadAnnotations')], [dict(type='PackSegInputs')]])]
tta_model = dict(type='SegTTAModel')
dataset = dict(
    type='FolderDataset', data_root='DATA', image_dir='images', mask_dir='masks',
    classes=('sky', 'road', 'car'), palette=[[10, 20, 30], [200, 0, 0], [0, 200, 0]])
train_dataloader = dict(
    batch_size=2, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(pipeline=test_pipeline, **dataset))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
train_cfg = dict(type='IterBasedTrainLoop', max_iters=2, val_interval=100)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))
param_scheduler = [dict(type='PolyLR', power=0.9, begin=0, end=2, by_epoch=False)]
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1),
    preflight=dict(type='PreflightHook'),
    resume=dict(type='ResumeHook'),
    visualization=dict(type='SegVisualizationHook'))
log_processor = dict(by_epoch=False)
visualizer = dict(
    type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')])
sync_bn = 'torch'
"""
PALETTE = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
# The labelled-only baseline: two domains on the same images, the second with one class more.
MULTI_DOMAIN = f"""
model['data_preprocessor']['type'] = 'BranchPreprocessor'
model.update(
    type='MultiDomainCCTSegmentor',
    domains=dict(
        first=dict(),
        second=dict(
            data_preprocessor=dict(mean=[100.0] * 3, size=(24, 24)),
            decode_head=dict(num_classes=4))))
sets = dict(
    first=dataset, second=dict(dataset, classes=('a', 'b', 'c', 'd'), palette={PALETTE}))
train_dataloader.update(
    sampler=dict(type='MultiDomainSampler', batch_size=2),
    dataset=dict(
        type='MultiDomainDataset',
        domains=dict(
            first=dict(
                type='SemiSegDataset',
                labeled=dict(**sets['first'], subset='labeled', pipeline=train_pipeline)),
            second=dict(
                type='SemiSegDataset',
                labeled=dict(
                    **sets['second'], subset='labeled', pipeline=[
                        *train_pipeline[:2], dict(type='Resize', scale=(24, 24)),
                        train_pipeline[3]])))))
val_dataloader['dataset'] = dict(
    type='MultiDomainConcatDataset',
    domains=dict(
        first=dict(pipeline=test_pipeline, **sets['first']),
        second=dict(pipeline=test_pipeline, **sets['second'])))
val_evaluator = test_evaluator = dict(type='MultiDomainIoUMetric', iou_metrics=['mIoU'])
tta_pipeline = dict(first=tta_pipeline, second=tta_pipeline)
visualizer['type'] = 'MultiDomainVisualizer'
find_unused_parameters = True
"""


@pytest.fixture(scope='module')
def joint(slow, tmp_path_factory):
    """The tiny config on two domains after two iterations, one of each."""
    folder = tmp_path_factory.mktemp('joint')
    rng = np.random.default_rng(0)
    for kind in ('images', 'masks'):
        (folder / 'data' / kind).mkdir(parents=True)
    for index in range(4):
        labels = np.repeat(rng.integers(0, 3, (4, 4)), 10, 0).repeat(12, 1).astype(np.uint8)
        Image.fromarray(labels).save(folder / 'data' / 'masks' / f'{index}.png')
        Image.fromarray(np.array(FIRST, np.uint8)[labels]).save(
            folder / 'data' / 'images' / f'{index}.jpg'
        )
    file, work_dir = folder / 'tiny.py', folder / 'work'
    file.write_text(CONFIG.replace('DATA', str(folder / 'data')) + MULTI_DOMAIN)
    run_tool('train', file, '--work-dir', work_dir)
    return SimpleNamespace(
        folder=folder,
        config=file,
        images=folder / 'data' / 'images',
        palette=FIRST,
        run=run_tool,
        work_dir=work_dir,
        checkpoint=work_dir / 'iter_2.pth',
    )


def metrics_of(work_dir):
    (path,) = work_dir.glob('*/[0-9]*.json')
    return json.loads(path.read_text())


def test_one_test_of_all_domains_with_predictions(joint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joint.run(
        'test', joint.config, joint.checkpoint, '--work-dir', 'w', '--out', 'png',
        '--show-dir', 'painted',
    )  # fmt: skip
    metrics = metrics_of(tmp_path / 'w')
    mean = (metrics['first/mIoU'] + metrics['second/mIoU']) / 2
    assert metrics['mIoU_avg'] == pytest.approx(mean, abs=0.01)
    for domain, classes in (('first', 3), ('second', 4)):
        written = [np.asarray(Image.open(path)) for path in (tmp_path / 'png' / domain).iterdir()]
        assert len(written) == 4
        assert all(each.shape == (40, 48) and each.max() < classes for each in written)
    assert len(list((tmp_path / 'painted').rglob('*.png'))) == 8


def test_tta_takes_the_pipeline_of_each_domain(joint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joint.run('test', joint.config, joint.checkpoint, '--work-dir', 'w', '--tta')
    assert {'first/mIoU', 'second/mIoU', 'mIoU_avg'} <= metrics_of(tmp_path / 'w').keys()


@pytest.mark.parametrize('domain', ['first', 'second'])
@pytest.mark.parametrize('with_meta', [True, False])
def test_predict_takes_the_domains_decoder_and_colours(joint, tmp_path, domain, with_meta):
    palette = dict(first=joint.palette, second=PALETTE)[domain]
    checkpoint = torch.load(joint.checkpoint, weights_only=False)
    if not with_meta:
        del checkpoint['meta']['dataset_meta']
    # Decoders that always say the last class.
    for name, value in checkpoint['state_dict'].items():
        if name.endswith('conv_seg.bias'):
            value[-1] = 1000.0
    torch.save(checkpoint, tmp_path / 'last.pth')
    arguments = (str(joint.config), str(tmp_path / 'last.pth'), str(joint.images))
    summary = predict_images(*arguments, str(tmp_path / 'out'), domain=domain, device='cpu')
    assert summary.written == 4
    mask = Image.open(tmp_path / 'out' / 'masks' / '0.png')
    assert mask.getpalette()[: 3 * len(palette)] == np.ravel(palette).tolist()
    assert (np.asarray(mask) == len(palette) - 1).all()


def test_predict_on_the_command_line(joint, tmp_path, capsys):
    arguments = (joint.config, joint.checkpoint, joint.images, '--out', tmp_path / 'out')
    assert joint.run('predict', *arguments, '--domain', 'second') == 0
    assert '4 written' in capsys.readouterr().out
    for domain, message in (
        ([], 'error: --domain is missing: expected one of first, second, as in model.domains of'),
        (['--domain', 'third'], 'error: --domain third: expected one of first, second, as in'),
        (['--domain', 'first'], 'error: --out: '),  # holds those of the second domain
    ):
        with pytest.raises(SystemExit) as stop:
            joint.run('predict', *arguments, *domain)
        assert stop.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(message)


@pytest.mark.parametrize(
    ('tool', 'takes'),
    [
        ('next_batch', 'WORK_DIR'),
        ('analyze_clusters', 'CONFIG'),
        ('report', 'a=WORK_DIR'),
    ],
)
def test_tools_that_take_one_data_set_say_so(joint, tmp_path, capsys, tool, takes):
    arguments = [joint.config, joint.checkpoint]
    if takes != 'CONFIG':
        arguments = [takes.replace('WORK_DIR', str(joint.work_dir))]
    with pytest.raises(SystemExit) as stop:
        joint.run(tool, *arguments, '--out', tmp_path / 'out')
    assert stop.value.code == 2
    place = joint.config if takes == 'CONFIG' else joint.checkpoint
    expected = f'error: {place}: several domains (first, second); expected a config of one'
    assert capsys.readouterr().err.splitlines()[-1] == expected
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('change', 'match'),
    [
        ("train_dataloader['batch_size'] = 4",
         r'^train_dataloader.sampler.batch_size=2: expected 4, as in train_dataloader$'),
        ("sets = val_dataloader['dataset']['domains']; sets['third'] = sets['first']",
         r'^val_dataloader.dataset.domains.third: no such domain in the model; expected .* second'),
        ("val_dataloader['batch_size'] = 2",
         '^val_dataloader.batch_size=2: expected 1, as a batch must not mix domains$'),
        ("test_dataloader = dict(val_dataloader, batch_size=2)",
         '^test_dataloader.batch_size=2: expected 1, as a batch must not mix domains$'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_before_training(joint, change, match):
    path = joint.folder / 'misfit.py'
    path.write_text(joint.config.read_text() + change + '\n')
    with pytest.raises(UserError, match=match):
        prepare_training(str(path))
