from pathlib import Path

import pytest
import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmseg.registry import MODELS
from own_config import AUXILIARY, UNLABELED_CROP, edit
from tiny import raw_batch

from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import training_problems
from mmseg_cct.writer.add_cct import _find, add_cct

DEEPLAB = 'deeplabv3plus_r18-d8_4xb4-80k_isaid-896x896'
SEGFORMER = 'mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py'


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'classes', 'channels', 'heads'),
    [(DEEPLAB, 16, 128, 1), (SEGFORMER, 150, 256, 0)],
)
def test_a_config_of_mmseg_trains_with_cct_and_keeps_the_rest(
    write, name, classes, channels, heads
):
    added = write(name)
    config = load_config(str(added.file), {})
    before = load_config(str(_find(name, added.file)[0]), {})
    assert strip(config.train_dataloader.dataset.labeled) == strip(before.train_dataloader.dataset)
    for key in ('val_dataloader', 'test_evaluator', 'param_scheduler', 'optim_wrapper'):
        assert strip(config[key]) == strip(before[key])
    assert config.train_dataloader.batch_size == before.train_dataloader.batch_size

    auxiliary = config.model.auxiliary_head
    assert isinstance(auxiliary, list) == bool(heads)
    bank = auxiliary[-1] if heads else auxiliary
    assert (bank.in_layer, bank.in_channels, bank.stride) == ('conv_seg', channels, 4)
    expected = dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21)
    assert bank.loss_consistency == expected

    forget_initial_weights(config.model)
    config.model.data_preprocessor.size = (32, 32)
    bank.compile, bank.context_classes = False, ()
    torch.manual_seed(0)
    model = revert_sync_batchnorm(MODELS.build(config.model)).train()
    batch = raw_batch(size=(32, 32), num_classes=classes, classes=None)
    losses = model(**model.data_preprocessor(batch, training=True), mode='loss')
    expected = {'decode.loss_ce', 'aux.loss'} | {f'aux_{i}.loss_ce' for i in range(heads)}
    assert expected == {key for key in losses if 'loss' in key}
    model.parse_losses(losses)[0].backward()
    assert [key for key, item in model.named_parameters() if item.grad is None] == []


def strip(part):
    """Without mmengine's marks of the scope that a base comes from."""
    if isinstance(part, dict):
        return {key: strip(value) for key, value in part.items() if key != '_scope_'}
    return [strip(value) for value in part] if isinstance(part, (list, tuple)) else part


def test_ones_own_config_keeps_its_hooks_imports_and_sets(write, config_file):
    added = write(str(config_file), context=['rust'])
    config = load_config(str(added.file), {})
    assert "_base_ = 'own.py'" in added.file.read_text()
    assert config.custom_imports.imports == ['json', 'mmseg_cct.plugin']
    assert [hook.type for hook in config.custom_hooks] == ['EMAHook']
    protections = ['preflight', 'findings', 'resume', 'nonfinite_loss', 'statistics']
    assert list(config.default_hooks) == ['ramp_up', 'teacher', *protections, 'iteration_seed']
    assert config.work_dir is None  # each method has a folder of its own
    assert config.default_hooks.teacher.decay == 0.99
    assert config.train_dataloader.dataset.labeled.type == 'RepeatDataset'
    bank = config.model.auxiliary_head
    assert (bank.in_index, bank.in_channels, bank.stride) == (2, 32, 16)
    assert bank.context_classes == ('rust',)
    assert config.train_dataloader.dataset.unlabeled.pipeline == [
        dict(type='LoadImageFromFile'),
        dict(type='MarkValidPixels'),
        UNLABELED_CROP,
        dict(type='PackUnlabeledInputs'),
    ]


@pytest.mark.parametrize('method', ['cct-strong', 'mean-teacher', 'supervised'])
def test_any_method_trains_on_it_and_keeps_the_heads_of_mmseg(write, config_file, method):
    edit(config_file, 'backbone=dict(', f'auxiliary_head={AUXILIARY}, backbone=dict(')
    # mean-teacher validates averaged weights itself
    edit(config_file, "custom_hooks = [dict(type='EMAHook')]", 'custom_hooks = []')
    losses = "loss_decode=[dict(type='CrossEntropyLoss'), dict(type='DiceLoss')]"
    edit(config_file, 'decode_head=dict(', f'decode_head=dict({losses}, ')
    config = load_config(str(write(str(config_file)).file), {'method': method})
    assert not list(training_problems(config))
    heads, hooks = config.model.auxiliary_head, list(config.default_hooks)
    kept = [head.type for head in heads]
    assert kept[0] == 'FCNHead' and ('PerturbedDecoderBank' in kept) == method.startswith('cct')
    assert ('ramp_up' in hooks) == (method != 'supervised')
    assert (config.train_dataloader.dataset.unlabeled is None) == (method == 'supervised')


def test_both_crops_are_the_configs_own(write, config_file):
    """A base that names its crop size is changed in one place."""
    config = edit(config_file, 'pipeline = [', 'crop_size = (32, 32)\npipeline = [')
    file = write(edit(Path(config), 'crop_size=(32, 32), cat', 'crop_size=crop_size, cat')).file
    assert 'crop_size=_base_.crop_size' in file.read_text()
    edit(config_file, 'crop_size = (32, 32)', 'crop_size = (48, 64)')
    dataset = load_config(str(file), {}).train_dataloader.dataset
    labeled = dataset.labeled.dataset.pipeline[2]
    assert labeled.crop_size == dataset.unlabeled.pipeline[2].crop_size == (48, 64)


@pytest.mark.parametrize('several', [False, True])
def test_heads_keep_their_learning_rates(write, config_file, several):
    heads = f'[{AUXILIARY}, {AUXILIARY}]' if several else AUXILIARY
    config = edit(config_file, 'backbone=dict(', f'auxiliary_head={heads}, backbone=dict(')
    key = 'auxiliary_head.1' if several else 'auxiliary_head'
    rule = f"paramwise_cfg=dict(custom_keys={{'{key}': dict(lr_mult=10)}})"
    added = write(edit(config_file, 'optim_wrapper = dict(', f'optim_wrapper = dict({rule}, '))
    kept = 'supervised_heads.1' if several else 'supervised_heads.0'
    assert added.choices[-1].endswith(f'your heads keep its rules, as {kept}')
    config = load_config(str(added.file), {})
    model = MODELS.build(config.model)
    groups = build_optim_wrapper(model, config.optim_wrapper).optimizer.param_groups
    faster = {id(weight) for group in groups if group['lr'] > 0.01 for weight in group['params']}
    for name, weight in model.named_parameters():
        is_decoder = not several and name.startswith('auxiliary_head')
        assert (id(weight) in faster) == (name.startswith(kept) or is_decoder)


def refused(write, config, **options):
    with pytest.raises(UserError) as caught:
        write(config, **options)
    return caught.value.problems[0].key


def test_mistakes_are_named(write, config_file, images, tmp_path):
    typo = DEEPLAB.replace('80k', '81k')
    with pytest.raises(UserError, match=f'^{typo}: no such file; .*did you mean {DEEPLAB}'):
        write(typo)
    assert refused(write, str(config_file), context=['rost']) == '--context'
    write(str(config_file))
    assert refused(write, str(config_file)) == str(tmp_path / 'cct.py')  # it exists
    for out, unlabeled, key in (
        ('cct', images, f'--out {tmp_path}/cct'),
        ('cct.py', 'gone', 'gone'),
        ('own.py', images, f'--out {config_file}'),  # the config itself
    ):
        with pytest.raises(UserError) as caught:
            add_cct(str(config_file), str(unlabeled), str(tmp_path / out), force=True)
        assert caught.value.problems[0].key == key


@pytest.mark.parametrize(
    ('old', 'new', 'key'),
    [
        ("type='EncoderDecoder'", "type='DepthEstimator'", 'own.py'),
        ("type='SegDataPreProcessor'", "type='Mine'", 'own.py'),
        ('in_channels=64', 'in_channels=63', 'model'),
        ('num_classes=3', 'num_classes=2, out_channels=1, threshold=0.5', 'out_channels=1'),
        ("'IterBasedTrainLoop', max_iters", "'EpochBasedTrainLoop', max_epochs", 'train_cfg'),
        ('custom_imports', 'from mmseg.models import FCNHead\nimports', 'cct.py'),
    ],
)
def test_a_config_that_cannot_be_leaves_no_file(write, config_file, old, new, key):
    before = sorted(config_file.parent.iterdir())
    assert refused(write, edit(config_file, old, new)).endswith(key)
    assert sorted(config_file.parent.iterdir()) == before


@pytest.mark.parametrize('method', ['cct-strong', 'supervised'])
def test_a_cascade_stays_one(write, config_file, method):
    """OCRNet: the last head is the main decoder, and what it has fused is z."""
    edit(config_file, "type='EncoderDecoder'", "type='CascadeEncoderDecoder', num_stages=2")
    head = config_file.read_text().partition('decode_head=')[2].partition('\n')[0].rstrip(',')
    ocr = head.replace("type='FCNHead'", "type='OCRHead', ocr_channels=8")
    edit(config_file, f'decode_head={head}', f'decode_head=[{head}, {ocr}]')
    config = load_config(str(write(str(config_file), method=method).file), {})
    cascade = method == 'supervised'
    assert config.model.type == ('CascadeEncoderDecoder' if cascade else 'CCTStrongSegmentor')
    assert [each.type for each in config.model.decode_head] == ['FCNHead', 'OCRHead']
    MODELS.build(config.model)
    assert refused(write, str(config_file), method='cct-abce', force=True) == '--method cct-abce'
