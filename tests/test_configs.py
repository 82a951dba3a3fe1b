"""Every shipped config: parsed, dumped, compared with its baseline, built and stepped once."""

import copy
import inspect
import json
import re
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from mmengine.structures import PixelData
from mmseg.registry import DATASETS, HOOKS, MODELS
from mmseg.structures import SegDataSample
from PIL import Image

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis import add_cct
from mmseg_cct.checks.stages import check_config
from mmseg_cct.config.load import load_config

CONFIGS = Path(__file__).parents[1] / 'configs'
ALL = sorted(
    path.relative_to(CONFIGS).as_posix()
    for path in CONFIGS.rglob('*.py')
    # multi_domain: test_multi_domain_configs.py; plus: test_plus_configs.py; classifiers:
    # pseudo_labels/test_weak_configs.py
    if not {'_base_', 'multi_domain', 'plus'} & set(path.parts) and not path.name.startswith('cam_')
)
CCT = [name for name in ALL if name.startswith('cct/')]
WEAK = [name for name in ALL if name.startswith('weak/')]
CROP = 64
TRAIN_SETS = {'voc': 10582, 'cityscapes': 2975, 'camvid': 367, 'idd': 1403}


@cache
def parse(name):
    return load_config(str(CONFIGS / name), {})


def load(name):
    """A config that a test may change: nothing to fetch, nothing to compile."""
    config = copy.deepcopy(parse(name))
    config.model.backbone.pop('init_cfg', None)
    if 'pretrained' in config.model.backbone:  # timm
        config.model.backbone.pretrained = False
    if has_bank(config):
        bank_of(config).compile = False
    return config


def shrink(config):
    """A narrow transformer in place of a plain one of timm: the same layers, an eighth as wide."""
    if config.model.backbone.type == 'TimmViT':
        config.model.backbone.update(embed_dim=48, num_heads=3)
        config.model.neck.in_channels = (48,) * 4


def classes_of(dataset):
    own = dataset.get('classes') or (dataset.get('metainfo') or {}).get('classes')
    return tuple(own or DATASETS.get(dataset.type).METAINFO['classes'])


def is_baseline(config):
    return config.train_dataloader.dataset.get('unlabeled') is None


def heads_of(config):
    """Settings of all auxiliary heads, a bank last."""
    heads = config.model.auxiliary_head or []
    return heads if isinstance(heads, list) else [heads]


def has_bank(config):
    return any(head.type == 'PerturbedDecoderBank' for head in heads_of(config))


def bank_of(config):
    (bank,) = (head for head in heads_of(config) if head.type == 'PerturbedDecoderBank')
    return bank


# What a step at CROP pixels does not tell apart: two models that differ in it alone are one.
NOT_STEPPED = {'data_preprocessor', 'num_classes', 'context_classes', 'init_cfg', 'pretrained'}


def architecture(setting):
    if isinstance(setting, dict):
        return {k: architecture(v) for k, v in setting.items() if k not in NOT_STEPPED}
    if isinstance(setting, (list, tuple)):
        return [architecture(each) for each in setting]
    return setting


def distinct_models():
    """The first config of each model there is: configs that differ by their data share one."""
    first = {}
    for name in ALL:
        model = architecture(parse(name).model.to_dict())
        first.setdefault(json.dumps(model, sort_keys=True), name)
    return list(first.values())


DISTINCT = distinct_models()


def random_batch(classes, seed=0):
    """Two labelled and two unlabelled images as the data loader gives them."""
    generator = np.random.default_rng(seed)
    batch = dict(inputs={}, data_samples={})
    for branch in ('labeled', 'unlabeled'):
        images, samples = [], []
        for _ in range(2):
            images.append(torch.from_numpy(generator.integers(0, 256, (3, CROP, CROP), np.uint8)))
            sample = SegDataSample(metainfo=dict(ori_shape=(CROP, CROP), classes=classes))
            if branch == 'labeled':
                labels = generator.integers(0, len(classes), (1, CROP, CROP))
                sample.gt_sem_seg = PixelData(data=torch.from_numpy(labels))
            else:  # L_w alone reads them
                labels = generator.integers(0, len(classes), (1, CROP, CROP))
                sample.pseudo_sem_seg = PixelData(data=torch.from_numpy(labels))
            samples.append(sample)
        batch['inputs'][branch], batch['data_samples'][branch] = images, samples
    return batch


@pytest.mark.parametrize('name', ALL)
def test_types_and_arguments_are_known(name):
    check_config(parse(name))


@pytest.mark.parametrize('name', ALL)
def test_a_dumped_config_reads_back_the_same(name, tmp_path):
    config = parse(name)
    config.dump(tmp_path / 'dump.py')
    assert Config.fromfile(tmp_path / 'dump.py').to_dict() == config.to_dict()


@pytest.mark.parametrize('name', ALL)
def test_classes_strides_and_sizes_agree(name):
    config = parse(name)
    model, dataset = config.model, config.train_dataloader.dataset
    classes = classes_of(dataset.labeled)
    for head in [model.decode_head, *heads_of(config)]:
        assert head.num_classes == len(classes)
    main = model.decode_head
    if has_bank(config):
        bank = bank_of(config)
        stride = bank.stride
        layer = bank.get('in_layer')
        assert bank.in_channels == (main.channels if layer == 'conv_seg' else main.in_channels)
        assert main.get('stride', stride) == stride
    else:
        stride = main.get('stride', 4)
    for loader in (config.val_dataloader, config.test_dataloader):
        assert classes_of(loader.dataset) == classes
        # MMSeg's `inference_model` takes it from the top level
        assert loader.dataset.pipeline == config.test_pipeline
    if not is_baseline(config):
        assert classes_of(dataset.unlabeled) == classes
    if has_bank(config):
        assert set(bank_of(config).context_classes) < set(classes)
    preprocessor = model.data_preprocessor
    assert all(side % stride == 0 for side in preprocessor.size)
    assert preprocessor.test_cfg.size_divisor % stride == 0


@pytest.mark.parametrize('name', ALL)
def test_the_schedule_ends_with_the_training(name):
    config = parse(name)
    schedulers = config.param_scheduler
    last = schedulers[-1] if isinstance(schedulers, (list, tuple)) else schedulers
    assert (last.type, last.end, last.by_epoch, last.eta_min) == (
        'PolyLR', config.train_cfg.max_iters, False, 0.0,
    )  # fmt: skip
    assert config.train_cfg.max_iters % config.train_cfg.val_interval == 0
    checkpoint = config.default_hooks.checkpoint
    if name.startswith('demo/'):  # its report takes the last one
        assert (checkpoint.interval, checkpoint.save_best) == (config.train_cfg.max_iters, None)
    else:
        assert checkpoint.interval == config.train_cfg.val_interval
        assert checkpoint.save_best == 'mIoU'
    assert checkpoint.type == 'DurableCheckpointHook'
    assert config.default_hooks.nonfinite_loss.type == 'NonFiniteLossHook'
    assert config.randomness.seed == 0
    assert sum(hook.type == 'IterationSeedHook' for hook in config.custom_hooks) == 1


@pytest.mark.parametrize('name', [name for name in CCT if 'folder' not in name])
def test_lists_and_iterations_fit_the_number_of_labels(name):
    config = parse(name)
    _, _, data, num_labeled = Path(name).stem.split('_')
    dataset_name = data.partition('-')[0]
    dataset = config.train_dataloader.dataset
    lists = [dataset.labeled.ann_file, dataset.unlabeled.ann_file]
    assert [Path(file).name for file in lists] == [
        f'{num_labeled}_labeled.txt', f'{num_labeled}_unlabeled.txt',
    ]  # fmt: skip
    total = TRAIN_SETS[dataset_name]
    if 'mbv2' not in name:  # shortened for two cores
        epoch = (total - int(num_labeled)) // config.train_dataloader.batch_size
        assert config.train_cfg.max_iters == 50 * epoch
    if dataset_name in ('camvid', 'idd'):  # the lists are in the project
        labeled, unlabeled = (set(Path(file).read_text().split()) for file in lists)
        assert len(labeled) == int(num_labeled)
        assert len(unlabeled) == total - int(num_labeled)
        assert not labeled & unlabeled
    else:
        assert {str(Path(file).parent) for file in lists} == {f'data/splits/{dataset_name}'}


# VOC's crops are the paper's, of any class
@pytest.mark.parametrize('name', [name for name in CCT if 'voc' not in name])
def test_training_images_are_scaled_cropped_and_flipped(name):
    """Few labels gain more by that than by unlabelled images (docs/results.md)."""
    config = parse(name)
    for branch in ('labeled', 'unlabeled'):
        pipeline = config.train_dataloader.dataset[branch].pipeline
        steps = {step.type: step for step in pipeline}
        assert steps['RandomResize'].ratio_range[1] == 2.0
        for crop, size in zip(steps['RandomCrop'].crop_size, config.model.data_preprocessor.size):
            assert crop <= size < crop + 16  # padded to the stride
        assert ('cat_max_ratio' in steps['RandomCrop']) == (branch == 'labeled')
        assert steps['RandomFlip'].prob == 0.5


# On a small machine's models: fewer decoders, and λ_u by the number of classes
@pytest.mark.parametrize(
    'name', [name for name in CCT if 'idd-lite' not in name and 'mbv2-jpu' not in name]
)
def test_a_config_does_not_change_the_method(name):
    base = Config.fromfile(CONFIGS / '_base_/models/cct.py').model.auxiliary_head
    config = parse(name)
    bank = bank_of(config)
    # left out, they are the class's own
    assert bank.get('perturbations', base.perturbations) == base.perturbations
    assert bank.loss_consistency == base.loss_consistency


@pytest.mark.parametrize('name', [name for name in ALL if has_bank(parse(name))])
def test_ramps_end_at_the_models_own_values(name):
    """With a ramp taken away a number would keep the value that the model has."""
    config = parse(name)
    ramps = [hook for hook in config.custom_hooks if hook.type == 'RampUpHook']
    ends = {hook.attribute: hook.end for hook in ramps}
    assert len(ends) == len(ramps)
    loss = bank_of(config).loss_consistency
    assert ends['auxiliary_head.loss_consistency.loss_weight'] == loss.loss_weight


# What is no reproduction of the paper takes its targets from the network that was best on real data
# (docs/results.md, IDD Lite): an EMA teacher. The demo's scenes have their own.
@pytest.mark.parametrize('name', [n for n in CCT if not n.startswith(('cct/cct_r50_voc', 'demo/'))])
def test_what_is_no_reproduction_has_a_teacher_and_its_weight_for_its_classes(name):
    config = parse(name)
    assert [hook.decay for hook in config.custom_hooks if hook.type == 'TeacherHook'] == [0.99]
    assert bank_of(config).loss_consistency.reference_classes == 21


def test_the_config_that_add_cct_writes_has_the_same_teacher():
    text = inspect.getsource(add_cct)
    assert re.findall(r"type='TeacherHook', decay=([^)]+)\)", text) == ['0.99']


def baseline_of(name):
    folder, _, file = name.rpartition('/')
    folder = 'baselines' if folder == 'cct' else folder
    return f'{folder}/{file.replace("cct", "supervised", 1)}'


# Those with pseudo labels differ from a CCT config in them alone.
PAIRED = [name for name in ALL if not name.startswith('weak/')]


def test_every_cct_config_has_a_baseline():
    baselines = {name for name in PAIRED if is_baseline(parse(name))}
    assert {baseline_of(name) for name in PAIRED if has_bank(parse(name))} == baselines


@pytest.mark.parametrize('name', [name for name in PAIRED if has_bank(parse(name))])
def test_the_baseline_differs_in_nothing_but_the_unlabelled_images(name):
    cct = parse(name).to_dict()
    baseline = parse(baseline_of(name)).to_dict()
    assert baseline['model'].pop('type') == 'EncoderDecoder'
    heads = [head for head in heads_of(parse(name)) if head.type != 'PerturbedDecoderBank']
    assert (baseline['model'].pop('auxiliary_head') or []) == heads
    assert baseline['train_dataloader']['dataset'].pop('unlabeled') is None
    del cct['model']['type'], cct['model']['auxiliary_head']
    del cct['train_dataloader']['dataset']['unlabeled']
    cct['custom_hooks'] = [hook for hook in cct['custom_hooks'] if not of_unlabeled_images(hook)]
    if name.startswith('demo/'):  # there each method trains at its own best rate
        cct['optim_wrapper']['optimizer']['lr'] = baseline['optim_wrapper']['optimizer']['lr']
    assert baseline == cct


def of_unlabeled_images(hook):
    return hook['type'] == 'TeacherHook' or hook.get('attribute', '').startswith('auxiliary_head')


@pytest.mark.parametrize(
    'name', [name for name in ALL if name.startswith(('baselines/mean-teacher', 'baselines/input'))]
)
def test_the_other_baselines_differ_in_nothing_but_the_method(name):
    file = f'cct_{name.partition("_")[2]}'
    other, cct = parse(name).to_dict(), parse(f'cct/{file}').to_dict()
    loss = other['model'].pop('loss_consistency')
    kind, weight = ('MSE', 30.0) if 'teacher' in name else ('KL', 3.0)
    of_cct = cct['model']['auxiliary_head']['loss_consistency']
    assert loss == dict(of_cct, type=f'{kind}Consistency', loss_weight=weight)
    ramp = dict(cct['custom_hooks'][0], attribute='loss_consistency.loss_weight', end=weight)
    assert ramp in other.pop('custom_hooks')
    for key in ('type', 'auxiliary_head', 'epsilon'):
        other['model'].pop(key, None)
        cct['model'].pop(key, None)
    del cct['custom_hooks']
    assert other == cct


# They take their drop-path rates out of a tensor.
COMPUTES_WHEN_BUILT = {'MixVisionTransformer', 'SwinTransformer', 'TimmViT'}


@pytest.mark.parametrize('name', [name for name in ALL if name not in DISTINCT])
def test_builds(name):
    """Without memory for its weights, where they allow it; hooks and optimizer too."""
    config = load(name)
    if 'timm' in config.model.backbone.type.lower():
        pytest.importorskip('timm', reason='its backbone is from timm')
    shrink(config)
    with torch.device('cpu' if config.model.backbone.type in COMPUTES_WHEN_BUILT else 'meta'):
        model = MODELS.build(config.model)
    build_optim_wrapper(model, config.optim_wrapper)
    for hook in config.custom_hooks:
        HOOKS.build(hook)


@pytest.mark.parametrize('name', [name for name in CCT if len(heads_of(parse(name))) > 1])
def test_heads_of_mmseg_beside_the_bank_learn_as_fast_as_the_main_one(name):
    config = load(name)
    model = MODELS.build(config.model)
    optimizer = build_optim_wrapper(model, config.optim_wrapper).optimizer
    rates = {id(p): group['lr'] for group in optimizer.param_groups for p in group['params']}
    main, beside = (
        {rates[id(p)] for p in heads.parameters()}
        for heads in (model.decode_head, model.supervised_heads)
    )
    assert main == beside and len(main) == 1


@pytest.mark.slow
@pytest.mark.parametrize('name', DISTINCT)
def test_builds_and_makes_one_step(name):
    torch.manual_seed(0)
    config = load(name)
    if 'mmpretrain.' in config.model.backbone.type:
        pytest.importorskip('mmpretrain', reason='its backbone is from mmpretrain (extra `weak`)')
    if 'timm' in config.model.backbone.type.lower():
        pytest.importorskip('timm', reason='its backbone is from timm')
    shrink(config)
    config.model.data_preprocessor.size = (CROP, CROP)
    classes = classes_of(config.train_dataloader.dataset.labeled)
    model = MODELS.build(config.model)
    optim_wrapper = build_optim_wrapper(model, config.optim_wrapper)
    batch = random_batch(classes)
    if is_baseline(config):
        batch = {key: value['labeled'] for key, value in batch.items()}
    losses = {}
    parse_losses = model.parse_losses

    def keep(outputs):
        losses.update(outputs)
        return parse_losses(outputs)

    model.parse_losses = keep
    gradients = {}
    optim_wrapper.optimizer.register_step_pre_hook(
        lambda *_: gradients.update({key: item.grad for key, item in model.named_parameters()})
    )
    if hasattr(model, 'set_teacher'):  # as TeacherHook does
        model.set_teacher(copy.deepcopy(model).eval())
    model.train()
    model.train_step(batch, optim_wrapper)

    assert torch.isfinite(torch.stack([value.detach().mean() for value in losses.values()])).all()
    expected = {'decode.loss_abce' if 'abce' in name else 'decode.loss_ce'}
    expected |= set() if is_baseline(config) else {'aux.loss'}
    expected |= {f'aux_{i}.loss_ce' for i in range(len(heads_of(config)) - has_bank(config))}
    assert {key for key in losses if 'loss' in key} == expected
    # so DDP runs without `find_unused_parameters`
    trained = {key for key, item in model.named_parameters() if item.requires_grad}
    assert trained
    assert {key for key, value in gradients.items() if value is not None} == trained

    for hook in config.custom_hooks:
        if hook.type == 'RampUpHook':
            messages = SimpleNamespace(update_scalar=lambda *_: None)
            runner = SimpleNamespace(model=model, iter=100, max_iters=100, message_hub=messages)
            HOOKS.build(hook).before_train_iter(runner, 100)
            assert attrgetter(hook.attribute)(model) == pytest.approx(hook.end, rel=1e-2)

    height, width = CROP + 7, CROP - 5  # no multiple of the stride
    image = torch.randint(0, 256, (3, height, width), dtype=torch.uint8)
    sample = SegDataSample(
        metainfo=dict(ori_shape=(height, width), img_shape=(height, width), img_path='image')
    )
    model.eval()
    (result,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    assert result.pred_sem_seg.shape == (height, width)
    assert result.seg_logits.data.shape == (len(classes), height, width)


def write_image(path, mode='RGB', size=(96, 64), classes=11):
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    shape = (size[1], size[0]) + ((3,) if mode == 'RGB' else ())
    top = 256 if mode == 'RGB' else classes
    Image.fromarray(generator.integers(0, top, shape, np.uint8), mode).save(path)


def write_voc(stems):
    root = Path('data/VOCdevkit/VOC2012')
    for stem in stems:
        write_image(root / f'JPEGImages/{stem}.jpg')
        write_image(root / f'SegmentationClass/{stem}.png', 'L')
    for stem in stems[:2]:
        write_image(root / f'SegmentationClassAug/{stem}.png', 'L')
    lists = root / 'ImageSets/Segmentation'
    lists.mkdir(parents=True)
    (lists / 'val.txt').write_text(stems[4])
    return 'data/splits/voc'


def write_cityscapes(stems):
    root = Path('data/cityscapes')
    for index, stem in enumerate(stems):
        split = 'val' if index == 4 else 'train'
        write_image(root / f'leftImg8bit/{split}/{stem}_leftImg8bit.png')
        if index not in (2, 3):
            write_image(root / f'gtFine/{split}/{stem}_gtFine_labelTrainIds.png', 'L')
    return 'data/splits/cityscapes'


def write_camvid(stems):
    root = Path('data/camvid')
    for index, stem in enumerate(stems):
        split = 'train' if index < 4 else 'val'
        write_image(root / f'images/{split}/{stem}.jpg')
        if index not in (2, 3):
            write_image(root / f'masks/{split}/{stem}.png', 'L')
    (root / 'val.txt').write_text(stems[4])
    return 'lists'


@pytest.mark.parametrize(
    ('name', 'write', 'stem', 'size'),
    [
        ('cct/cct_r50_voc_60.py', write_voc, '2007_00000{}', (320, 320)),
        ('cct/cct_r50_cityscapes_100.py', write_cityscapes, 'ulm/ulm_00000{}_000019', (512, 1024)),
        ('cct/cct_r50_camvid_20.py', write_camvid, '0001TP_00000{}', (360, 480)),
        ('cct/cct_mbv2_camvid_50.py', write_camvid, '0001TP_00000{}', (168, 224)),
    ],
)
def test_reads_the_documented_layout(name, write, stem, size, tmp_path, monkeypatch):
    """Two labelled images, two without any mask, one for validation."""
    monkeypatch.chdir(tmp_path)
    stems = [stem.format(index) for index in range(5)]
    folder = Path(write(stems))
    folder.mkdir(parents=True, exist_ok=True)
    config = load(name)
    loader = config.train_dataloader
    for branch, part in (('labeled', stems[:2]), ('unlabeled', stems[2:4])):
        file = folder / Path(loader.dataset[branch].ann_file).name
        file.write_text('\n'.join(part))
        if 'camvid' in name:  # the project's own lists name real images
            loader.dataset[branch].ann_file = str(file.absolute())
    loader.update(batch_size=2, num_workers=0, persistent_workers=False)
    config.val_dataloader.update(num_workers=0, persistent_workers=False)

    batch = next(iter(Runner.build_dataloader(loader, seed=0)))
    batch = MODELS.build(config.model.data_preprocessor)(batch, training=True)
    for branch in ('labeled', 'unlabeled'):
        assert batch['inputs'][branch].shape == (2, 3, *size)
        for sample in batch['data_samples'][branch]:
            assert ('gt_sem_seg' in sample) == (branch == 'labeled')
            assert sample.classes == classes_of(loader.dataset.labeled)

    (sample,) = next(iter(Runner.build_dataloader(config.val_dataloader)))['data_samples']
    assert sample.gt_sem_seg.shape == (64, 96)
    tta = copy.deepcopy(config.val_dataloader.dataset)
    tta.pipeline = config.tta_pipeline
    views = DATASETS.build(tta)[0]
    assert len(views['inputs']) == 10
    assert {sample.flip for sample in views['data_samples']} == {False, True}
    assert len({tuple(image.shape) for image in views['inputs']}) == 5
