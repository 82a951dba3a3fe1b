"""Every config of several domains: parsed, dumped, compared with its baseline, built, stepped."""

import copy
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from mmengine.structures import PixelData
from mmseg.registry import DATASETS, HOOKS, MODELS
from mmseg.structures import SegDataSample

import mmseg_cct.plugin  # noqa: F401 (registers the components)

CONFIGS = Path(__file__).parents[1] / 'configs' / 'multi_domain'
SETTINGS = (
    'r50_cityscapes-camvid_50',
    'r50_cityscapes-camvid_100',
    'r50_cityscapes-sun_1500',
    'mbv2-jpu_camvid-idd_20',
)
KINDS = ('cct', 'supervised', 'cct-adv')
ALL = [f'{kind}_{setting}.py' for kind in KINDS for setting in SETTINGS]
# images to train on, classes, height and width
DOMAINS = dict(
    cityscapes=(2975, 19, (512, 1024)),
    camvid=(367, 11, (360, 480)),
    sun=(5285, 13, (480, 640)),
    idd=(1403, 7, None),
)
RAMP = 'domains.*.auxiliary_head.loss_consistency.loss_weight'


@cache
def parse(name):
    return Config.fromfile(CONFIGS / name)


def classes_of(dataset):
    return tuple(dataset.get('classes') or DATASETS.get(dataset.type).METAINFO['classes'])


def test_the_configs_are_these():
    assert sorted(path.name for path in CONFIGS.glob('*.py')) == sorted(ALL)


# the largest of each setting: mmengine takes seconds to write a config
@pytest.mark.parametrize('name', [name for name in ALL if name.startswith('cct-adv')])
def test_a_dumped_config_reads_back_the_same(name, tmp_path):
    config = parse(name)
    config.dump(tmp_path / 'dump.py')
    assert Config.fromfile(tmp_path / 'dump.py').to_dict() == config.to_dict()


@pytest.mark.parametrize('name', ALL)
def test_domains_agree_in_model_and_data(name):
    config = parse(name)
    model, is_baseline = config.model, name.startswith('supervised')
    domains = list(model.domains)
    assert model.type == 'MultiDomainCCTSegmentor'
    assert model.auxiliary_head is None if is_baseline else model.auxiliary_head.stride == 8
    train = config.train_dataloader
    assert train.batch_size == train.sampler.batch_size
    assert list(config.tta_pipeline) == domains
    for loader in (config.train_dataloader, config.val_dataloader, config.test_dataloader):
        assert list(loader.dataset.domains) == domains
    for domain in domains:
        _, num_classes, size = DOMAINS[domain]
        own, pairs = model.domains[domain], train.dataset.domains[domain]
        sets = [
            pairs.labeled,
            *[config[f'{part}_dataloader'].dataset.domains[domain] for part in ('val', 'test')],
        ]
        sets += [] if is_baseline else [pairs.unlabeled]
        for dataset in sets:
            assert len(classes_of(dataset)) == num_classes
        for head in ('decode_head', 'auxiliary_head'):
            assert own[head].num_classes == num_classes
        assert set(own.auxiliary_head.context_classes) < set(classes_of(pairs.labeled))
        height, width = own.data_preprocessor.size
        assert size in (None, (height, width)) or 'mbv2' in name
        assert height % 8 == width % 8 == 0
        if 'mbv2' in name:  # trained on crops, tested on whole images
            for branch in [pairs.labeled] if is_baseline else [pairs.labeled, pairs.unlabeled]:
                (crop,) = [step for step in branch.pipeline if step.type == 'RandomCrop']
                assert tuple(crop.crop_size) == (height, width)
            height, width = dict(camvid=(180, 240), idd=(227, 320))[domain]
        else:
            for dataset in sets:
                (resize,) = [step for step in dataset.pipeline if step.type == 'Resize']
                assert tuple(resize.scale) == (width, height)
        scales = [tuple(each.scale) for each in config.tta_pipeline[domain][-1].transforms[0]]
        assert scales == [(int(width * s), int(height * s)) for s in (0.5, 0.75, 1.0, 1.25, 1.5)]


@pytest.mark.parametrize('name', ALL)
def test_lists_schedule_and_settings(name):
    config = parse(name)
    number = int(Path(name).stem.rsplit('_', 1)[1])
    lengths = []
    for domain, pairs in config.train_dataloader.dataset.domains.items():
        total = DOMAINS[domain][0]
        for branch in ('labeled', 'unlabeled'):
            if pairs[branch] is None:
                continue
            file = Path(pairs[branch].ann_file)
            assert file.name == f'{number}_{branch}.txt'
            if domain in ('camvid', 'idd'):  # the lists are in the project
                expected = number if branch == 'labeled' else total - number
                assert len(file.read_text().split()) == expected
            else:
                folder = dict(cityscapes='cityscapes', sun='sun_rgbd')[domain]
                assert file.parent == Path('data/splits') / folder
        lengths.append(total - number)
    if 'mbv2' not in name:  # shortened for two cores
        epoch = 2 * (max(lengths) // config.train_dataloader.batch_size)
        assert config.train_cfg.max_iters == (100 if 'sun' in name else 50) * epoch
    assert config.train_cfg.max_iters % config.train_cfg.val_interval == 0
    scheduler = config.param_scheduler
    assert (scheduler.type, scheduler.end) == ('PolyLR', config.train_cfg.max_iters)
    checkpoint = config.default_hooks.checkpoint
    assert (checkpoint.save_best, checkpoint.interval) == (
        'mIoU_avg',
        config.train_cfg.val_interval,
    )
    assert config.find_unused_parameters is True
    assert config.randomness.seed == 0
    if name.startswith('cct'):
        bank = config.model.auxiliary_head
        reference = 21 if 'mbv2' in name else None  # the paper's λ_u is the same for all domains
        assert bank.loss_consistency == dict(
            type='MSEConsistency', loss_weight=30.0, reference_classes=reference
        )
        decoders = sum(each.num_decoders for each in bank.perturbations.values())
        ramps = [hook for hook in config.custom_hooks if hook.type == 'RampUpHook']
        ends = {ramp.attribute: ramp.end for ramp in ramps}
        assert decoders == (11 if 'mbv2' in name else 30)
        assert ends == {RAMP: 30.0}
        for ramp in ramps:
            assert (ramp.schedule, ramp.start, ramp.fraction) == ('exp', 0.0, 0.1)
    if name.startswith('cct-adv'):
        assert config.model.discriminator == dict(
            type='DomainDiscriminator', in_channels=config.model.decode_head.in_channels, scale=2e-2
        )


@pytest.mark.parametrize('setting', SETTINGS)
def test_the_three_differ_in_nothing_else(setting):
    cct, baseline, adversarial = (parse(f'{kind}_{setting}.py').to_dict() for kind in KINDS)
    assert baseline['model'].pop('auxiliary_head') is None
    for pairs in baseline['train_dataloader']['dataset']['domains'].values():
        assert pairs.pop('unlabeled') is None
    assert adversarial['model'].pop('discriminator')
    assert adversarial == cct
    del cct['model']['auxiliary_head']
    for pairs in cct['train_dataloader']['dataset']['domains'].values():
        del pairs['unlabeled']
    of_cct = ('RampUpHook', 'TeacherHook')
    cct['custom_hooks'] = [hook for hook in cct['custom_hooks'] if hook['type'] not in of_cct]
    assert baseline == cct


def random_batch(domain, num_classes, classes, is_baseline):
    torch.manual_seed(0)
    batch = dict(inputs={}, data_samples={})
    for branch in ('labeled', 'unlabeled'):
        samples = [
            SegDataSample(metainfo=dict(ori_shape=(64, 64), classes=classes, domain=domain))
            for _ in range(2)
        ]
        if branch == 'labeled':
            for sample in samples:
                labels = torch.randint(0, num_classes, (1, 64, 64))
                sample.gt_sem_seg = PixelData(data=labels)
        images = [torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8) for _ in samples]
        batch['inputs'][branch], batch['data_samples'][branch] = images, samples
    if is_baseline:
        return {key: value['labeled'] for key, value in batch.items()}
    return batch


@pytest.mark.slow
@pytest.mark.parametrize(
    'name',
    [
        f'{kind}_{setting}.py'
        for kind, setting in (
            ('cct-adv', 'r50_cityscapes-camvid_50'),
            ('cct', 'r50_cityscapes-sun_1500'),
            ('supervised', 'mbv2-jpu_camvid-idd_20'),
            ('cct-adv', 'mbv2-jpu_camvid-idd_20'),
        )
    ],
)
def test_builds_and_makes_a_step_in_every_domain(name):
    torch.manual_seed(0)
    config, is_baseline = copy.deepcopy(parse(name)), name.startswith('supervised')
    config.model.backbone.pop('init_cfg')
    config.model.data_preprocessor.size = (64, 64)
    if not is_baseline:
        config.model.auxiliary_head.compile = False
    for own in config.model.domains.values():
        own.data_preprocessor.size = (64, 64)
    model = MODELS.build(config.model)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    rates = {group['lr'] for group in wrapper.param_groups}
    expected_rates = [0.0, 1.2e-3, 3e-3] if 'mbv2' in name else [1e-3, 1e-2]
    assert sorted(rates) == pytest.approx(expected_rates)
    model.train()
    for domain, pairs in config.train_dataloader.dataset.domains.items():
        classes = classes_of(pairs.labeled)
        logged = model.train_step(random_batch(domain, len(classes), classes, is_baseline), wrapper)
        expected = {'decode.loss_ce'}
        expected |= set() if is_baseline else {'aux.loss'}
        expected |= {'adversarial.loss'} if 'adv' in name else set()
        expected = {'loss', *(f'{domain}.{key}' for key in expected)}
        assert {key for key in logged if 'loss' in key} == expected
        assert all(torch.as_tensor(value).isfinite() for value in logged.values())
        if not is_baseline:
            weight = model.domains[domain].auxiliary_head.loss_consistency.loss_weight
            assert weight == 30.0
    for hook in config.custom_hooks:
        HOOKS.build(hook)


def test_reads_camvid_and_idd_lite(camvid_root, monkeypatch, tmp_path):
    idd_root = camvid_root.parent / 'idd_lite'
    if not idd_root.is_dir():
        pytest.skip(f'IDD Lite is not at {idd_root} (link it as data/idd_lite, or --data-root=DIR)')
    (tmp_path / 'data').symlink_to(camvid_root.parent.absolute())
    monkeypatch.chdir(tmp_path)
    config = copy.deepcopy(parse('cct_mbv2-jpu_camvid-idd_20.py'))
    for pairs in config.train_dataloader.dataset.domains.values():
        pairs.check = False  # of 1770 images; it takes seconds
    loaders = []
    for loader in (config.train_dataloader, config.val_dataloader, config.test_dataloader):
        loader.update(num_workers=0, persistent_workers=False)
        loaders.append(Runner.build_dataloader(loader, seed=0))
    train, val, test = loaders
    assert len(train.dataset) == 347 + 1383
    assert (len(val.dataset), len(test.dataset)) == (101 + 204, 233 + 204)
    for batch, domain, size in zip(train, ('camvid', 'idd'), ((120, 160), (112, 160))):
        for branch in ('labeled', 'unlabeled'):
            assert [tuple(image.shape) for image in batch['inputs'][branch]] == [(3, *size)] * 8
            assert {sample.domain for sample in batch['data_samples'][branch]} == {domain}
    truth = batch['data_samples']['labeled'][0].gt_sem_seg.data.unique()
    assert set(truth.tolist()) <= {0, 1, 2, 3, 4, 5, 6, 255}
    assert val.dataset[101]['data_samples'].gt_sem_seg.shape == (227, 320)


@pytest.mark.parametrize('tta', [False, True])
def test_sun_is_scored_at_the_size_of_its_training(tta, tmp_path):
    config = copy.deepcopy(parse('cct_r50_cityscapes-sun_1500.py'))
    image, mask = tmp_path / 'a.jpg', tmp_path / 'a.png'
    cv2.imwrite(str(image), np.zeros((53, 73, 3), np.uint8))
    cv2.imwrite(str(mask), np.arange(73, dtype=np.uint8)[None].repeat(53, 0))
    pipeline = config.test_dataloader.dataset.domains.sun.pipeline
    item = Compose(config.tta_pipeline.sun if tta else pipeline)(
        dict(
            img_path=str(image),
            seg_map_path=str(mask),
            seg_fields=[],
            label_map=None,
            reduce_zero_label=False,
        )
    )
    samples = item['data_samples'] if tta else [item['data_samples']]
    for sample in samples:  # scaled and flipped, but for the mask
        assert sample.ori_shape == sample.gt_sem_seg.shape == (480, 640)
        assert torch.equal(sample.gt_sem_seg.data, samples[0].gt_sem_seg.data)
    assert samples[0].gt_sem_seg.data[0, 0].diff().ge(0).all()
    if tta:
        flips = [sample.flip for sample in samples]
        sizes = [sample.img_shape for sample in samples]
        assert flips == [False, True] * 5
        assert sizes[::2] == [(240, 320), (360, 480), (480, 640), (600, 800), (720, 960)]
