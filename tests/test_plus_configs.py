"""The recipes of configs/plus: parsed, compared with the CCT config they build on, and stepped."""

import copy
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.structures import PixelData
from mmseg.registry import HOOKS, MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.checks.stages import check_config
from mmseg_cct.config.load import load_config
from mmseg_cct.models.segmentors.auxiliary_heads import split_settings

CONFIGS = Path(__file__).parents[1] / 'configs'
ALL = sorted(path.stem for path in (CONFIGS / 'plus').glob('*.py'))
METHODS = sorted(path.stem for path in (CONFIGS / '_base_/methods').glob('*.py'))
FIELD_SPLITS = (92, 183, 366, 732, 1464)
DATA = [
    'r50_camvid_50',
    'r50_folder',
    'mbv2-jpu_camvid-180x240_50',
    'mbv2-jpu_folder',
    *(f'mbv2-jpu_idd-lite_{n}' for n in (20, 50, 100)),
    *(f'mbv2-jpu_voc-field_{n}' for n in (92, 183)),
    *(f'r50_voc-field_{n}' for n in FIELD_SPLITS),
]
# CCT+ on models of MMSegmentation and on DINO's transformers
WITH_FCN_HEAD = ['deeplabv3plus-r50', 'upernet-swin-t']
OTHER_MODELS = [*WITH_FCN_HEAD, 'segformer-mit-b0', 'segformer-mit-b2']
TRANSFORMERS = ['dinov2-s', 'dinov2-b', 'dinov3-s']
OTHERS = [
    *(
        f'{model}_{data}'
        for model in OTHER_MODELS + TRANSFORMERS
        for data in ('camvid_50', 'folder')
    ),
    *(f'{model}_voc-field_92' for model in WITH_FCN_HEAD + TRANSFORMERS),
]
# measured in docs/models.md
MEASURED = 'cct-strong_deeplabv3plus-mbv2_idd-lite_20'
CROP = 64


def parse(name):
    return load_config(str(CONFIGS / f'{name}.py'), {})


def test_every_method_has_a_config_for_all_data():
    expected = {f'{method}_{data}' for method in METHODS for data in DATA}
    assert set(ALL) == expected | {f'cct-plus_{data}' for data in OTHERS} | {MEASURED}


@pytest.mark.parametrize('name', ALL)
def test_it_differs_from_cct_in_the_method_alone(name):
    config, (method, _, data) = parse(f'plus/{name}'), name.partition('_')
    check_config(config)
    recipe = parse(f'_base_/methods/{method}')
    pipeline = config.train_dataloader.dataset.unlabeled.pipeline
    assert pipeline[-1] == recipe.strong_views
    assert config.custom_hooks == _expected_hooks(recipe, data)
    assert recipe.calibration in config.custom_hooks
    if 'voc-field' in data:
        n = int(data.rpartition('_')[2])
        dataset = config.train_dataloader.dataset
        for branch in ('labeled', 'unlabeled'):
            assert dataset[branch].ann_file == f'data/splits/voc_field/{n}_{branch}.txt'
        expected = 50 * ((10582 - n) // 10)
        schedulers = config.param_scheduler
        last = schedulers[-1] if isinstance(schedulers, list) else schedulers
        assert config.train_cfg.max_iters == last['end'] == expected
        return
    base = parse(f'cct/cct_{data}')
    for key in ('optim_wrapper', 'param_scheduler', 'train_cfg', 'val_dataloader'):
        assert config[key] == base[key], key
    assert pipeline[:-1] == base.train_dataloader.dataset.unlabeled.pipeline
    for key in ('backbone', 'neck', 'data_preprocessor'):
        assert config.model.get(key) == base.model.get(key), key


def _expected_hooks(recipe, data):
    """The recipe's, unless a CCT config has a λ_u and a teacher of its own; and what speeds up."""
    own = [] if 'voc-field' in data else parse(f'cct/cct_{data}').custom_hooks
    bank = recipe.method.get('auxiliary_head', True)
    if bank and any(hook.type == 'TeacherHook' for hook in own):
        return [*own, recipe.calibration]
    quick = [hook for hook in own if hook.type in ('FreezeHook', 'ChannelsLastHook')]
    return [*recipe.method_hooks, *quick]


def branch(name, classes, size):
    samples = []
    for _ in range(2):
        sample = SegDataSample(metainfo=dict(ori_shape=size, img_shape=size, classes=classes))
        if name == 'labeled':
            labels = torch.randint(0, len(classes), (1, *size))
            sample.gt_sem_seg = PixelData(data=labels)
        samples.append(sample)
    images = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for _ in samples]
    return images, samples


def batch_for(config, classes):
    """As the data loader gives it; the unlabelled images are padded."""
    num_views = config.strong_views.num_views
    names = ['labeled', 'unlabeled', *(f'unlabeled_strong_{i}' for i in range(num_views))]
    branches = {
        name: branch(name, classes, (CROP, CROP - 16 * (name != 'labeled'))) for name in names
    }
    return dict(
        inputs={name: images for name, (images, _) in branches.items()},
        data_samples={name: samples for name, (_, samples) in branches.items()},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ('method', 'data'),
    [
        *(
            (method, data)
            for data in ('r50_voc-field_183', 'mbv2-jpu_idd-lite_50')
            for method in METHODS
        ),
        # z of the main head; beside an auxiliary head of MMSeg; a linear head
        *(
            ('cct-plus', f'{model}_folder')
            for model in ('segformer-mit-b0', *WITH_FCN_HEAD, 'dinov2-s')
        ),
    ],
)
def test_builds_and_makes_one_step(method, data):
    torch.manual_seed(0)
    np.random.seed(0)
    config = parse(f'plus/{method}_{data}')
    model_config = copy.deepcopy(config.model)
    model_config.backbone.pop('init_cfg', None)
    model_config.data_preprocessor.size = (CROP, CROP)
    if model_config.backbone.type == 'TimmViT':
        pytest.importorskip('timm', reason='its backbone is from timm')
        model_config.backbone.update(pretrained=False, embed_dim=48, num_heads=3)
        model_config.neck.in_channels = (48,) * 4
    heads, bank = split_settings(model_config.auxiliary_head)
    if bank:
        bank.compile = False
    model_config.loss_strong.threshold = 0.0  # random weights are sure of nothing
    model = MODELS.build(model_config)
    optim_wrapper = build_optim_wrapper(model, config.optim_wrapper)
    if any(hook.type == 'TeacherHook' for hook in config.custom_hooks):
        model.set_teacher(copy.deepcopy(model).requires_grad_(False).eval())
    context = bank.context_classes if bank else ()
    names = [*context, *(f'class {i}' for i in range(len(context), model.num_classes))]
    losses = {}
    parse_losses = model.parse_losses
    model.parse_losses = lambda outputs: losses.update(outputs) or parse_losses(outputs)
    gradients = {}
    optim_wrapper.optimizer.register_step_pre_hook(
        lambda *_: gradients.update({key: p.grad for key, p in model.named_parameters()})
    )
    model.train()
    model.train_step(batch_for(config, tuple(names)), optim_wrapper)

    expected = {'decode.loss_ce'}
    expected |= set() if method == 'cct-strong' else {'strong.loss'}
    expected |= {'aux_0.loss_ce'} if heads else set()
    expected |= {'aux.loss'} if method.startswith('cct') else set()
    expected |= {'feature.loss'} if method == 'unimatch' else set()
    assert {key for key in losses if 'loss' in key} == expected
    assert all(losses[key].isfinite().all() for key in expected)
    assert [key for key, value in gradients.items() if value is None] == []
    for hook in config.custom_hooks:
        if hook.type == 'RampUpHook':
            messages = SimpleNamespace(update_scalar=lambda *_: None)
            runner = SimpleNamespace(model=model, iter=100, max_iters=100, message_hub=messages)
            HOOKS.build(hook).before_train_iter(runner, 100)
            assert attrgetter(hook.attribute)(model) == pytest.approx(hook.end, rel=1e-2)


def test_weights_are_the_papers():
    unimatch = parse('plus/unimatch_r50_voc-field_183').model
    assert unimatch.decode_head.loss_decode.loss_weight == 1 / 2
    assert unimatch.loss_strong.loss_weight / 2 == 1 / 8  # of each of the two views
    assert unimatch.feature_weight == 1 / 4
    v2 = parse('plus/unimatch-v2_r50_voc-field_183').model
    assert v2.decode_head.loss_decode.loss_weight == v2.loss_strong.loss_weight == 1 / 2
