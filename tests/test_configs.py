"""Every setting and every method: loaded, dumped, compared with its pair, built and stepped."""

import copy
from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny
import torch
from mmengine.dataset import Compose
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from mmengine.structures import PixelData
from mmseg.registry import DATASETS, HOOKS, MODELS
from settings import ALL, DISTINCT, DOMAINS, SINGLE, distinct_methods, fits, parse
from settings import MODELS as RECIPES

from mmseg_cct.config.compose import find_bank, merged, training_sets
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import PLAIN, method_names
from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.cct import as_list

IN_A_LIST = 'cct/cct_deeplabv3plus-r50_camvid_50'
# a setting of each kind
DEMO = 'demo/cct_shapes'
KINDS = [SINGLE, IN_A_LIST, DOMAINS, 'weak/cct_mbv2_camvid_50-weak', DEMO]
CROP = 32
TRAIN_SETS = dict(voc=10582, cityscapes=2975, camvid=367, idd=1403, sun=5285)


def heads_and_bank(model):
    """Tells MMSeg's auxiliary heads from the auxiliary decoders, if there are any."""
    bank = find_bank(dict(model=model))
    return [each for each in as_list(model.auxiliary_head) if each is not bank], bank


def load(name, method=PLAIN):
    """A config that a test may change: nothing to fetch, nothing to compile."""
    config = copy.deepcopy(parse(name, method))
    backbone = config.model.backbone
    backbone.pop('init_cfg', None)
    if 'timm' in backbone.type.lower():
        pytest.importorskip('timm', reason='its backbone is from timm')
        backbone.pretrained = False
    if 'mmpretrain.' in backbone.type:
        pytest.importorskip('mmpretrain', reason='its backbone is from mmpretrain (extra `weak`)')
    if backbone.type == 'TimmViT':  # the same layers, an eighth as wide
        backbone.update(embed_dim=48, num_heads=3)
        config.model.neck.in_channels = (48,) * 4
    if bank := find_bank(config):
        bank.compile = False
    return config


def classes_of(dataset):
    own = dataset.get('classes') or (dataset.get('metainfo') or {}).get('classes')
    return tuple(own or DATASETS.get(dataset.type).METAINFO['classes'])


def parts_of(config):
    """Each domain's name, pairs and evaluated sets; those of the config if it has none."""
    evaluated = [config[f'{split}_dataloader'].dataset for split in ('val', 'test')]
    for name in config.model.get('domains') or [None]:
        yield (
            name,
            config.train_dataloader.dataset.domains[name] if name else training_sets(config)[0],
            [each.domains[name] if name else each for each in evaluated],
        )


def hook_types(config):
    hooks = [*config.default_hooks.values(), *config.get('custom_hooks', [])]
    return [hook.type for hook in hooks if hook]


@pytest.mark.parametrize('name', [*ALL, *RECIPES])
def test_classes_strides_and_sizes_agree(name):
    config = parse(name)
    loaders = (config.train_dataloader, config.val_dataloader, config.test_dataloader)
    for domain, pairs, evaluated in parts_of(config):
        model = (
            config.model if domain is None else merged(config.model, config.model.domains[domain])
        )
        classes = classes_of(pairs.labeled)
        for dataset in (pairs.unlabeled, *evaluated):
            assert classes_of(dataset) == classes
        for head in [model.decode_head, *as_list(model.auxiliary_head)]:
            assert head.num_classes == len(classes)
        main, (_, bank) = model.decode_head, heads_and_bank(model)
        layer = bank.get('in_layer')
        assert bank.in_channels == (main.channels if layer == 'conv_seg' else main.in_channels)
        assert main.get('stride', bank.stride) == bank.stride
        assert set(bank.context_classes) < set(classes)
        assert all(side % bank.stride == 0 for side in model.data_preprocessor.size)
        assert model.data_preprocessor.test_cfg.size_divisor % bank.stride == 0
        if domain is None:  # MMSeg's `inference_model` takes it from the top level
            assert all(dataset.pipeline == config.test_pipeline for dataset in evaluated)
        else:
            for of_domain in (config.tta_pipeline, *(loader.dataset.domains for loader in loaders)):
                assert list(of_domain) == list(config.model.domains)


@pytest.mark.parametrize('name', ALL)
def test_the_schedule_ends_with_the_training(name):
    config = parse(name)
    last = as_list(config.param_scheduler)[-1]
    assert (last.type, last.end, last.by_epoch, last.eta_min) == (
        'PolyLR', config.train_cfg.max_iters, False, 0.0,
    )  # fmt: skip
    assert config.train_cfg.max_iters % config.train_cfg.val_interval == 0
    assert config.default_hooks.checkpoint.get('interval') in (None, config.train_cfg.val_interval)
    for hook in ('DurableCheckpointHook', 'NonFiniteLossHook', 'IterationSeedHook'):
        assert hook_types(config).count(hook) == 1


NUMBERED = [name for name in ALL if name.startswith(('cct/', 'multi_')) and 'folder' not in name]


@pytest.mark.parametrize('name', NUMBERED)
def test_lists_and_iterations_fit_the_number_of_labels(name):
    config = parse(name)
    *_, data, num_labeled = Path(name).stem.split('_')
    num_labeled = int(num_labeled)
    names = list(config.model.get('domains') or [data.partition('-')[0]])
    unlabeled = []
    for dataset_name, pairs in zip(names, training_sets(config)):
        total = TRAIN_SETS[dataset_name]
        unlabeled.append(total - num_labeled)
        assert pairs.num_labeled == num_labeled
        if dataset_name not in ('camvid', 'idd'):
            folder = dict(sun='sun_rgbd').get(dataset_name, dataset_name)
            assert pairs.split_dir == f'data/splits/{folder}'
            continue
        lists = [  # in the project
            set(Path(pairs.split_dir, f'{num_labeled}_{branch}.txt').read_text().split())
            for branch in ('labeled', 'unlabeled')
        ]
        assert [len(each) for each in lists] == [num_labeled, total - num_labeled]
        assert not lists[0] & lists[1]
    if 'mbv2' not in name and 'idd' not in name:  # shortened for two cores
        epoch = len(names) * (max(unlabeled) // config.train_dataloader.batch_size)
        assert config.train_cfg.max_iters == (100 if 'sun' in name else 50) * epoch


def without_unlabeled(config):
    """What a run is without its method: of model and hooks what no method changes."""
    config = config.to_dict()
    for name in ('ramp_up', 'weak_ramp_up', 'teacher', 'bootstrap'):
        config['default_hooks'].pop(name, None)
    model = config['model']
    for name in [name for name in model if name not in ('backbone', 'neck', 'data_preprocessor')]:
        if name != 'domains':
            del model[name]
    dataset = config['train_dataloader']['dataset']
    for part in (dataset.get('domains') or {'': dataset}).values():
        part.pop('unlabeled')
        part.pop('strong_views', None)
    return config


@pytest.mark.parametrize(
    ('name', 'method'),
    [
        *((SINGLE, method) for method in method_names()),
        *((name, method) for name in KINDS[1:] for method in ('supervised', 'fixmatch', 'cct-adv')),
    ],
)
def test_a_method_changes_the_loss_of_unlabelled_images_alone(name, method):
    """The same labelled images, optimiser, schedule, seeds and length."""
    if not fits(method, name):
        with pytest.raises(UserError, match=r'\.py: trains (one domain|several domains)'):
            parse(name, method)
        return
    config, cct = parse(name, method), parse(name)
    assert without_unlabeled(config) == without_unlabeled(cct)
    build(load(name, method))


@pytest.mark.parametrize('name', KINDS)
def test_the_baseline_has_no_unlabelled_images_and_mmsegs_own_heads(name):
    config, cct = parse(name, 'supervised'), parse(name)
    heads, _ = heads_and_bank(cct.model)
    assert as_list(config.model.auxiliary_head) == heads
    assert config.model.decode_head == cct.model.decode_head
    assert all(part.unlabeled is None for part in training_sets(config))
    assert not {'RampUpHook', 'TeacherHook'} & set(hook_types(config))


def test_weights_are_the_papers():
    for method, kind, weight in (('mean-teacher', 'MSE', 30.0), ('input-vat', 'KL', 3.0)):
        loss = dict(find_bank(parse(SINGLE)).loss_consistency)
        loss.update(type=f'{kind}Consistency', loss_weight=weight)
        assert parse(SINGLE, method).model.loss_consistency == loss
    unimatch = parse('cct/cct_r50_voc_1464', 'unimatch').model
    assert unimatch.supervised_weight == 1 / 2
    assert unimatch.loss_strong.loss_weight / 2 == 1 / 8  # of each of the two views
    assert unimatch.feature_weight == 1 / 4
    all_pixels = parse('cct/cct_r50_voc_1464', 'unimatch-tau0').model
    assert all_pixels.pop('loss_strong') == {**unimatch.pop('loss_strong'), 'threshold': 0}
    assert all_pixels == unimatch
    v2 = parse('cct/cct_r50_voc_1464', 'unimatch-v2').model
    assert v2.supervised_weight == v2.loss_strong.loss_weight == 1 / 2
    adversarial = parse(DOMAINS, 'cct-adv').model
    assert adversarial.discriminator == dict(
        type='DomainDiscriminator', in_channels=adversarial.decode_head.in_channels, scale=2e-2
    )


# They take their drop-path rates out of a tensor.
COMPUTES_WHEN_BUILT = {'MixVisionTransformer', 'SwinTransformer', 'TimmViT'}


def build(config):
    """Without memory for its weights, where they allow it; hooks and optimizer too."""
    with torch.device('cpu' if config.model.backbone.type in COMPUTES_WHEN_BUILT else 'meta'):
        model = MODELS.build(config.model)
    build_optim_wrapper(model, config.optim_wrapper)
    for hook in filter(None, config.default_hooks.values()):
        if hook.type == 'SegVisualizationHook':
            continue  # it asks for the runner's visualizer
        built = HOOKS.build(hook)
        if hook.type == 'RampUpHook':
            assert built.find(model)


def random_batch(classes, num_views=0, is_baseline=False, **meta):
    """Two images of each branch as the data loader gives them; the unlabelled ones are padded."""
    views = ['unlabeled', *(f'unlabeled_strong_{i}' for i in range(num_views))]
    meta = dict(meta, classes=classes, num_classes=len(classes))
    batch = tiny.raw_batch(('labeled', *views), size=(CROP, CROP - 16), **meta)
    for key, value in tiny.raw_batch(('labeled',), size=(CROP, CROP), **meta).items():
        batch[key].update(value)
    if is_baseline:
        return {key: value['labeled'] for key, value in batch.items()}
    for sample in (sample for view in views for sample in batch['data_samples'][view]):
        # L_w reads them
        labels = torch.randint(0, len(classes), (1, CROP, CROP - 16))
        sample.pseudo_sem_seg = PixelData(data=labels)
    return batch


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'method'),
    [
        *((name, PLAIN) for name in DISTINCT),
        *((DEMO, method) for method in distinct_methods(DEMO)),
        # z of the main head; a linear head
        *((f'models/{model}', 'cct-plus') for model in ('segformer-mit-b0', 'dinov2-s')),
        *((DOMAINS, method) for method in ('supervised', 'cct-adv')),
    ],
)
def test_builds_and_makes_one_step(name, method):
    torch.manual_seed(0)
    np.random.seed(0)
    config = load(name, method)
    if config.model.get('loss_strong'):
        config.model.loss_strong.threshold = 0.0  # random weights are sure of nothing
    for part in [config.model, *(config.model.get('domains') or {}).values()]:
        part.data_preprocessor.size = (CROP, CROP)
    model = MODELS.build(config.model)
    optim_wrapper = build_optim_wrapper(model, config.optim_wrapper)
    gradients = {}
    optim_wrapper.optimizer.register_step_pre_hook(
        lambda *_: gradients.update({key: p.grad for key, p in model.named_parameters()})
    )
    if heads := getattr(model, 'supervised_heads', None):  # learn as fast as the main head
        rates = {id(p): g['lr'] for g in optim_wrapper.param_groups for p in g['params']}
        assert len({rates[id(p)] for h in (model.decode_head, heads) for p in h.parameters()}) == 1
    if 'TeacherHook' in hook_types(config):
        model.set_teacher(copy.deepcopy(model).requires_grad_(False).eval())
    model.train()
    for domain, pairs, _ in parts_of(config):
        num_views = (pairs.get('strong_views') or {}).get('num_views', 0)
        metainfo = dict(domain=domain) if domain else {}
        batch = random_batch(
            classes_of(pairs.labeled), num_views, pairs.unlabeled is None, **metainfo
        )
        logged = model.train_step(batch, optim_wrapper)
        assert all(torch.as_tensor(value).isfinite().all() for value in logged.values())
    # so DDP runs without `find_unused_parameters`
    trained = {key for key, item in model.named_parameters() if item.requires_grad}
    assert trained
    if not config.get('find_unused_parameters'):
        assert {key for key, value in gradients.items() if value is not None} == trained


# by config: folder, images and masks in it, stem of a file, the lists' folder, training size
LAYOUTS = {
    'cct_r50_voc_1464': (
        'data/VOCdevkit/VOC2012',
        'JPEGImages/{0}.jpg',
        ('SegmentationClass/{0}.png', 'SegmentationClassAug/{0}.png'),
        *('2007_00000{}', 'data/splits/voc', (320, 320)),
    ),
    'cct_r50_cityscapes_372': (
        'data/cityscapes',
        'leftImg8bit/{1}/{0}_leftImg8bit.png',
        ('gtFine/{1}/{0}_gtFine_labelTrainIds.png',),
        *('ulm/ulm_00000{}_000019', 'data/splits/cityscapes', (512, 1024)),
    ),
    'cct_mbv2_camvid_50': (
        'data/camvid',
        'images/{1}/{0}.jpg',
        ('masks/{1}/{0}.png',),
        *('0001TP_00000{}', 'lists', (168, 224)),
    ),
}


@pytest.mark.parametrize('name', LAYOUTS)
def test_reads_the_documented_layout(name, tmp_path, monkeypatch):
    """Two labelled images, two without any mask, one for validation."""
    monkeypatch.chdir(tmp_path)
    root, image, masks, stem, lists, size = LAYOUTS[name]
    root, lists, rng = Path(root), Path(lists), np.random.default_rng(0)
    stems = [stem.format(index) for index in range(5)]
    for index, each in enumerate(stems):
        split = 'train' if index < 4 else 'val'
        for file in (image, *(masks if index not in (2, 3) else ())):
            path = root / file.format(each, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 11, (64, 96, 3), np.uint8)
            cv2.imwrite(str(path), pixels if file == image else pixels[..., 0])
    for folder in (root, root / 'ImageSets/Segmentation', lists):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'val.txt').write_text(stems[4])
    config = load_config(name, {})
    loader = config.train_dataloader
    for branch, part in (('labeled', stems[:2]), ('unlabeled', stems[2:4])):
        (lists / f'{name.rpartition("_")[2]}_{branch}.txt').write_text('\n'.join(part))
    if 'camvid' in name:  # the project's own lists name real images
        loader.dataset.split_dir = str(lists)
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


def test_reads_camvid_and_idd_lite(camvid_root, monkeypatch, tmp_path):
    if not (camvid_root.parent / 'idd_lite').is_dir():
        pytest.skip(f'IDD Lite is not in {camvid_root.parent} (link it, or pass --data-root=DIR)')
    (tmp_path / 'data').symlink_to(camvid_root.parent.absolute())
    monkeypatch.chdir(tmp_path)
    config = load(DOMAINS)
    loaders = []
    for loader in (config.train_dataloader, config.val_dataloader, config.test_dataloader):
        loader.update(num_workers=0, persistent_workers=False)
        loaders.append(Runner.build_dataloader(loader, seed=0))
    train, val, _ = loaders
    assert [len(loader.dataset) for loader in loaders] == [367 + 1403, 101 + 204, 233 + 204]
    for batch, domain, size in zip(train, ('camvid', 'idd'), ((120, 160), (112, 160))):
        for branch in ('labeled', 'unlabeled'):
            assert [tuple(image.shape) for image in batch['inputs'][branch]] == [(3, *size)] * 8
            assert {sample.domain for sample in batch['data_samples'][branch]} == {domain}
    truth = batch['data_samples']['labeled'][0].gt_sem_seg.data.unique()
    assert set(truth.tolist()) <= {*range(7), 255}
    assert val.dataset[101]['data_samples'].gt_sem_seg.shape == (227, 320)


def test_sun_is_scored_at_the_size_of_its_training(tmp_path):
    config = parse('multi_domain/cct_r50_cityscapes-sun_1500')
    image, mask = tmp_path / 'a.jpg', tmp_path / 'a.png'
    cv2.imwrite(str(image), np.zeros((53, 73, 3), np.uint8))
    cv2.imwrite(str(mask), np.arange(73, dtype=np.uint8)[None].repeat(53, 0))
    files = dict(img_path=str(image), seg_map_path=str(mask))
    files.update(seg_fields=[], label_map=None, reduce_zero_label=False)
    views = Compose(config.tta_pipeline.sun)(copy.deepcopy(files))['data_samples']
    plain = Compose(config.test_dataloader.dataset.domains.sun.pipeline)(files)['data_samples']
    for sample in (plain, *views):  # scaled and flipped, but for the mask
        assert sample.ori_shape == sample.gt_sem_seg.shape == (480, 640)
        assert torch.equal(sample.gt_sem_seg.data, plain.gt_sem_seg.data)
    assert [sample.flip for sample in views] == [False, True] * 5
    sizes = [sample.img_shape for sample in views[::2]]
    assert sizes == [(240, 320), (360, 480), (480, 640), (600, 800), (720, 960)]
