"""Configs for a folder: written, loaded, built and stepped; what does not fit is refused."""

import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from mmseg.registry import MODELS
from PIL import Image
from world import run_tool

from mmseg_cct.apis.config_choices import BACKBONES, METHODS, RECIPES, WITH_BANK
from mmseg_cct.apis.new_config import _base_configs, _next_commands, write_configs
from mmseg_cct.checks.stages import check_config
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError

CLASSES = ('background', 'crack', 'rust')


@pytest.fixture
def data(tmp_path):
    """Eight images of 64×40, four with a mask, and two to validate on."""
    root = tmp_path / 'data' / 'mine'
    rng = np.random.default_rng(0)
    for part, count, masks in (('.', 8, 4), ('val', 2, 2)):
        for index in range(count):
            pixels = rng.integers(0, 256, (40, 64, 3), np.uint8)
            save(root / part / 'images' / f'{index}.jpg', pixels)
            if index < masks:
                save(root / part / 'masks' / f'{index}.png', rng.integers(0, 3, (40, 64), np.uint8))
    return root


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write(data, **options):
    options = dict(method='cct') | options
    return write_configs(str(data), str(data.parents[1] / 'configs'), CLASSES, **options)


@pytest.mark.parametrize(
    ('name', 'plain'),
    [("it's", 'it-s'), ('my data', 'my-data'), ('v1.2', 'v1.2'), ('$x;"y"', '-x-y-'), ('ö', 'ö')],
)
def test_any_name_of_a_folder_will_do(data, name, plain):
    renamed = data.rename(data.with_name(name))
    out = data.parents[1] / "own's configs"
    written = write_configs(str(renamed), str(out), CLASSES, method='fixmatch')
    names = [f'{method}_mbv2_{plain}.py' for method in ('supervised', 'cct', 'fixmatch')]
    assert [path.name for path in written.files] == names
    for path in written.files:
        dataset = load_config(str(path), {}).train_dataloader.dataset.labeled
        assert dataset.image_dir == f'{renamed}/images'
    trained = [shlex.split(command)[-1] for command in written.commands[:-1]]
    assert trained == [str(out / names[0]), str(out / names[2])]
    assert shlex.split(written.commands[-1])[-4] == f'supervised=work_dirs/supervised_mbv2_{plain}'


def test_cct_and_its_baseline_are_written_for_the_folder(data):
    written = write(data, context=('background',), size=(64, 32), iters=40, batch_size=2)
    baseline, cct = (load_config(str(path), {}) for path in written.files)
    assert [path.name for path in written.files] == ['supervised_mbv2_mine.py', 'cct_mbv2_mine.py']
    for config in (baseline, cct):
        labeled = config.train_dataloader.dataset.labeled
        assert labeled.classes == config.test_dataloader.dataset.classes == CLASSES
        assert labeled.image_dir == f'{data}/images'
        assert config.val_dataloader.dataset.mask_dir == f'{data}/val/masks'
        assert config.num_classes == config.model.decode_head.num_classes == 3
        assert config.crop_size == config.crop['crop_size'] == (32, 64)
        assert config.model.data_preprocessor.size == (32, 64)
        assert labeled.pipeline[3].crop_size == (32, 64)
        assert config.test_pipeline[1] == dict(type='Resize', scale=(64, 32), keep_ratio=True)
        assert config.param_scheduler.end == config.train_cfg.max_iters == 40
        assert config.train_dataloader.batch_size == 2
    assert cct.model.auxiliary_head.context_classes == ('background',)
    assert cct.custom_hooks[0].end == 30
    assert cct.model.auxiliary_head.loss_consistency.reference_classes == 21
    assert baseline.model.auxiliary_head is None
    assert baseline.train_dataloader.dataset.unlabeled is None
    assert baseline.optim_wrapper == cct.optim_wrapper
    assert all(len(path.read_text().splitlines()) < 80 for path in written.files)


def test_the_baseline_alone(data):
    (path,) = write(data, method='supervised').files
    config = load_config(str(path), {})
    assert config.model.type == 'EncoderDecoder' and config.model.auxiliary_head is None
    assert config.train_dataloader.dataset.unlabeled is None
    assert [hook.type for hook in config.custom_hooks] == ['IterationSeedHook']


@pytest.mark.slow
@pytest.mark.parametrize('name', BACKBONES)
def test_every_backbone_builds_and_segments(data, name):
    if name in ('convnext-t', 'regnety') or 'dino' in name:
        pytest.importorskip('mmpretrain' if name == 'convnext-t' else 'timm')
    frozen = name.endswith('-frozen')
    written = write(data, backbone=name, from_scratch=not frozen)
    baseline, config = (load_config(str(path), {}) for path in written.files)
    check_config(config)
    assert frozen or config.optim_wrapper.get('paramwise_cfg') is None
    heads = config.model.auxiliary_head
    *heads, bank = heads if isinstance(heads, list) else [heads]
    assert (baseline.model.auxiliary_head or []) == heads
    assert {head.num_classes for head in [*heads, bank, config.model.decode_head]} == {3}
    bank.compile = False
    if frozen:
        config.model.backbone.pretrained = False
    model = MODELS.build(config.model).eval()
    images = torch.zeros(1, 3, 64, 96)
    with torch.no_grad():
        features = model.extract_feat(images)
        z, logits = model.features_of_bank(features), model.predict_target(images, features)
    stride = BACKBONES[name].stride
    assert z[-1].shape[1:] == (bank.in_channels, 64 // stride, 96 // stride)
    # heads of MMSeg leave the upsampling to the segmentor
    full = (64, 96) if hasattr(model.decode_head, 'stride') else z[-1].shape[2:]
    assert logits.shape == (1, 3, *full)


def test_a_frozen_encoder_is_not_random(data):
    with pytest.raises(UserError, match='a frozen encoder would stay random'):
        write(data, backbone='dinov2-s-frozen', from_scratch=True)


@pytest.mark.parametrize('name', METHODS)
def test_every_method_loads_and_builds(data, name):
    files = write(data, method=name, from_scratch=True).files
    for path in files:
        config = load_config(str(path), {})
        check_config(config)
        model = MODELS.build(config.model)
        pipeline = (config.train_dataloader.dataset.unlabeled or {}).get('pipeline', ())
        views = [step.num_views for step in pipeline if step['type'] == 'StrongViews']
        if name in RECIPES and path == files[-1]:
            assert path.name.startswith(f'{name}_mbv2')
            assert type(model).__name__ == 'CCTPlusSegmentor'
            assert views == [2 if name.startswith('unimatch') else 1]
            assert model.with_auxiliary_head is (name in WITH_BANK)
        else:
            assert type(model).__name__ != 'CCTPlusSegmentor' and views == []


def test_cct_plus_keeps_the_hooks_and_the_weight_of_the_folders_cct(data):
    _, cct, plus = (load_config(str(path), {}) for path in write(data, method='cct-plus').files)
    assert plus.custom_hooks == [*cct.custom_hooks, dict(type='CalibrationHook')]
    assert plus.custom_hooks[0].end == 30
    assert plus.model.auxiliary_head.loss_consistency.reference_classes == 21
    assert plus.model.auxiliary_head == cct.model.auxiliary_head


@pytest.mark.parametrize(('name', 'hooks'), [('fixmatch', []), ('unimatch-v2', ['TeacherHook'])])
def test_without_a_bank_there_is_no_ramp(data, name, hooks):
    config = load_config(str(write(data, method=name).files[-1]), {})
    assert [hook.type for hook in config.custom_hooks] == [
        *('IterationSeedHook', 'CalibrationHook'),
        *hooks,
    ]


@pytest.mark.parametrize('name', RECIPES)
def test_recipes_keep_mmsegs_own_heads(data, name):
    options = dict(backbone='deeplabv3plus-r50', from_scratch=True)
    _, cct, config = (
        load_config(str(path), {}) for path in write(data, method=name, **options).files
    )
    check_config(config)
    bank = cct.model.auxiliary_head[-1]
    expected = [bank] if name in WITH_BANK else []
    assert config.model.auxiliary_head == [cct.model.auxiliary_head[0], *expected]


def test_what_trains_next_is_the_baseline_and_the_recipe(data, monkeypatch):
    monkeypatch.chdir(data.parents[1])
    written = write(data, method='cct-plus')
    assert [path.name.split('_')[0] for path in written.files] == ['supervised', 'cct', 'cct-plus']
    trained = [line.rsplit('/', 1)[-1] for line in written.commands[:-1]]
    assert trained == ['supervised_mbv2_mine.py', 'cct-plus_mbv2_mine.py']


def test_without_a_folder_to_validate_on_every_fifth_mask_is_held_out(data):
    (data / 'val').rename(data / 'other')
    written = write(data)
    labeled, val = (path.read_text().split() for path in written.lists)
    assert (labeled, val) == (['1', '2', '3'], ['0'])
    config = load_config(str(written.files[0]), {})
    assert config.train_dataloader.dataset.labeled.ann_file == str(written.lists[0])
    assert config.val_dataloader.dataset.ann_file == str(written.lists[1])
    assert config.val_dataloader.dataset.image_dir == f'{data}/images'


@pytest.mark.parametrize(
    ('images', 'expected'),
    [((64, 40), (64, 40)), ((1000, 500), (512, 256)), ((30, 2000), (8, 512))],
)
def test_the_default_size_is_the_images_in_multiples_of_the_stride(data, images, expected):
    config = load_config(str(write(resized(data, images)).files[0]), {})
    assert config.size == expected


@pytest.mark.parametrize(
    ('images', 'backbone', 'expected'),
    [
        ((328, 200), 'mbv2', (168, 104)),
        ((328, 200), 'r18', (328, 200)),
        ((328, 184), 'mbv2', (328, 184)),  # a half would be too small to learn from
    ],
)
def test_crops_are_half_of_the_images_where_there_is_no_gpu(data, images, backbone, expected):
    config = load_config(str(write(resized(data, images), backbone=backbone).files[-1]), {})
    assert (config.size, config.crop_size[::-1]) == (images, expected)
    labeled, unlabeled = (config.train_dataloader.dataset[x] for x in ('labeled', 'unlabeled'))
    assert config.model.data_preprocessor.size == labeled.pipeline[3].crop_size == expected[::-1]
    assert unlabeled.pipeline[2].crop_size == expected[::-1]
    assert config.test_pipeline[1].scale == labeled.pipeline[2].scale == images


def resized(data, images):
    for path in [*(data / 'images').iterdir(), *data.glob('val/images/*')]:
        if not (data / 'masks' / f'{path.stem}.png').exists():
            Image.new('RGB', images).save(path)
    for path in data.rglob('*.png'):
        Image.fromarray(np.zeros(images[::-1], np.uint8)).save(path)
        Image.new('RGB', images).save(path.parents[1] / 'images' / f'{path.stem}.jpg')
    return data


def test_weights_of_a_file_are_named_with_their_prefix(data, tmp_path):
    backbone = MODELS.build(dict(type='mmseg.MobileNetV2', out_indices=(2, 4, 6)))
    state = {f'backbone.{name}': value for name, value in backbone.state_dict().items()}
    torch.save(dict(state_dict=state), tmp_path / 'w.pth')
    config = load_config(str(write(data, weights=str(tmp_path / 'w.pth')).files[0]), {})
    init = config.model.backbone.init_cfg
    assert (init.checkpoint, init.prefix) == (str(tmp_path / 'w.pth'), 'backbone.')
    with pytest.raises(UserError, match=r'w\.pth has 0 of the \d+ weights of ResNetV1c; expected'):
        write(data, weights=str(tmp_path / 'w.pth'), backbone='r18')
    with pytest.raises(UserError, match=r'gone\.pth is not a file'):
        write(data, weights='gone.pth')


@pytest.mark.slow
def test_weights_of_timm_are_tried_before_a_config_is_written(data, tmp_path):
    timm = pytest.importorskip('timm')
    other = timm.create_model('vit_tiny_patch16_224')
    torch.save(other.state_dict(), tmp_path / 'other.pth')
    (tmp_path / 'text.pth').write_text('no checkpoint')
    for name, file, message in (
        (
            'dinov3-s',
            'other.pth',
            r'overlay\.file: .*other\.pth does not fit vit_small_patch16_dinov3',
        ),
        ('regnety', 'other.pth', r'other\.pth has 0 of the \d+ weights of regnety_032'),
        ('regnety', 'text.pth', r'text\.pth does not fit regnety_032'),
    ):
        with pytest.raises(UserError, match=message):
            write(data, backbone=name, weights=str(tmp_path / file))
    own = timm.create_model('regnety_032')
    torch.save(own.state_dict(), tmp_path / 'own.pth')
    written = write(data, backbone='regnety', weights=str(tmp_path / 'own.pth'))
    assert 'own.pth' in written.files[-1].read_text()


def test_what_is_there_is_not_overwritten(data):
    path = write(data).files[0]
    with pytest.raises(UserError, match=f'{path}: is there already; expected another --out'):
        write(data)
    write(data, force=True)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(context=('crak',)), "--context: no class 'crak'; did you mean crack"),
        (dict(size=(64, 30)), '--size 64x30: expected multiples of 8.* such as 64x32'),
        (dict(size=(64, 40), backbone='mit-b0'), 'multiples of 16.* such as 64x48'),
        (dict(crop=(30, 32)), '--crop 30x32: expected multiples of 8.* such as 32x32'),
    ],
)
def test_options_that_do_not_fit_are_refused(data, options, message):
    with pytest.raises(UserError, match=message):
        write(data, **options)
    assert not (data.parents[1] / 'configs').exists()


def test_one_class_is_refused(data):
    with pytest.raises(
        UserError, match=r"classes=\('crack',\): expected two names or more, that o"
    ):
        write_configs(str(data), str(data.parents[1] / 'configs'), ['crack'])
    assert not (data.parents[1] / 'configs').exists()


def test_images_without_masks_are_needed(data):
    for path in (data / 'images').iterdir():
        if not (data / 'masks' / f'{path.stem}.png').exists():
            path.unlink()
    with pytest.raises(UserError, match=r'every image has a mask; expected .*, or --method sup'):
        write(data)
    assert write(data, method='supervised').files


def test_masks_may_have_a_suffix(data):
    for path in data.rglob('masks/*.png'):
        path.rename(path.with_name(f'{path.stem}_mask.png'))
    for path in write(data, mask_suffix='_mask.png').files:
        config = load_config(str(path), {})
        halves = config.train_dataloader.dataset
        for dataset in (halves.labeled, halves.unlabeled, config.val_dataloader.dataset):
            assert (dataset or halves.labeled).mask_suffix == '_mask.png'


def test_one_mask_is_too_few_to_hold_some_out(data):
    (data / 'val').rename(data / 'other')
    for index in (1, 2, 3):
        (data / 'masks' / f'{index}.png').unlink()
    with pytest.raises(UserError, match='one mask, and no folder val'):
        write(data)


def test_the_tool_says_what_it_found_and_what_to_run(data, capsys, monkeypatch):
    monkeypatch.chdir(data.parents[1])
    run_tool('new_config', 'data/mine', '--classes', *CLASSES, 'bolt', '--size', '64x40')
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        'data/mine: 4 labelled and 4 unlabelled images of 64x40 pixels (median), 2 to validate on'
    )
    assert any('bolt (1 of ' in line and 'in none of the' in line for line in lines)
    assert lines[-4:] == [
        'Next:',
        '  python -m mmseg_cct train configs/mine/supervised_mbv2_mine.py',
        '  python -m mmseg_cct train configs/mine/cct-strong_mbv2_mine.py',
        '  python -m mmseg_cct report supervised=work_dirs/supervised_mbv2_mine '
        'cct-strong=work_dirs/cct-strong_mbv2_mine --out work_dirs/report',
    ]
    run_tool('new_config', 'data/mine', '--classes', *CLASSES, '--method', 'cct+', '--out', 'plus')
    assert (data.parents[1] / 'plus' / 'cct-plus_mbv2_mine.py').is_file()
    capsys.readouterr()
    with pytest.raises(SystemExit):
        run_tool('new_config', 'data/mine', '--classes', *CLASSES, '--size', '64')
    assert '64; expected WIDTHxHEIGHT' in capsys.readouterr().err


def test_in_a_checkout_the_bases_and_tools_are_its_own(data, project_root, monkeypatch):
    monkeypatch.chdir(project_root)
    # what lies below configs is named from there, what lies elsewhere by the package
    assert _base_configs('configs/mine') == '../_base_'
    assert _base_configs('configs/deep/mine') == '../../_base_'
    assert _base_configs(str(data)) == 'mmseg_cct::_base_'
    assert _next_commands([Path('c/cct_r18_mine.py')]) == (
        'python tools/train.py c/cct_r18_mine.py',
        'python tools/report.py cct=work_dirs/cct_r18_mine --out work_dirs/report',
    )
