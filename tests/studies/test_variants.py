"""What the ablation changes: single settings, the shipped configs, and a step of each variant."""

import copy
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from mmseg.registry import HOOKS, MODELS

from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.auxiliary_heads import split_settings
from mmseg_cct.studies.ablation import TITLES, grid_methods
from mmseg_cct.studies.names import PERTURBATIONS, VARIANT_NAMES
from mmseg_cct.studies.variants import VARIANTS, full, only

BASE = 'cct/cct_r50_camvid_50.py'
SHIPPED = {
    'baseline': 'baselines/supervised_r50_camvid_50.py',
    'baseline_abce': 'baselines/supervised-abce_r50_camvid_50.py',
    'mean_teacher': 'baselines/mean-teacher_r50_camvid_50.py',
    'input_vat': 'baselines/input-vat_r50_camvid_50.py',
    'cct': BASE,
    'abce': 'cct/cct-abce_r50_camvid_50.py',
}
BANK = 'model.auxiliary_head.'
# The others, by the settings that they change.
CHANGES = {
    'kl': {BANK + 'loss_consistency.type': 'KLConsistency'},
    'js': {BANK + 'loss_consistency.type': 'JSConsistency'},
    'confidence': {BANK + 'loss_consistency.confidence_threshold': 0.5},
    'pairwise': {
        BANK + 'loss_pairwise.type': 'PairwiseVariance',
        BANK + 'loss_pairwise.loss_weight': 1.0,
    },
    'final_relu': {BANK + 'final_activation': True, 'model.decode_head.final_activation': True},
    'vat_floor': {BANK + 'perturbations.vat.norm_floor': 1e-8},
    'positions': {BANK + 'position_fraction': 0.25},
    'auxiliary_lr': {'optim_wrapper.paramwise_cfg.custom_keys.auxiliary_head..lr_mult': 10.0},
}
# Those of another target, by their teacher's decay.
TARGETS = {'own_target': [], 'eval_target': [1e-6], 'ema_target': [0.99]}


@pytest.fixture
def configs(project_root):
    return project_root / 'configs'


@pytest.fixture
def base(configs):
    return Config.fromfile(configs / BASE)


def settings(config):
    """Without the helper names that a config file may bring."""
    kept = (
        'model',
        'train_dataloader',
        'val_dataloader',
        'custom_hooks',
        'optim_wrapper',
        'param_scheduler',
        'train_cfg',
        'default_hooks',
        'randomness',
    )
    return {key: config.to_dict()[key] for key in kept}


def flat(values, prefix=''):
    """Settings by dotted key."""
    found = {}
    for key, value in values.items():
        name = f'{prefix}{key}'
        found |= flat(value, f'{name}.') if isinstance(value, dict) else {name: value}
    return found


def test_every_variant_is_compared_and_has_a_title():
    assert VARIANTS.keys() == SHIPPED.keys() | CHANGES.keys() | TARGETS.keys()
    assert VARIANTS.keys() == TITLES.keys()
    assert tuple(VARIANTS) == VARIANT_NAMES


@pytest.mark.parametrize('name', SHIPPED)
def test_a_variant_is_the_shipped_config(name, base, configs):
    VARIANTS[name](base)
    assert settings(base) == settings(Config.fromfile(configs / SHIPPED[name]))


@pytest.mark.parametrize('name', CHANGES)
def test_a_variant_changes_nothing_else(name, base):
    before = flat(settings(base))
    VARIANTS[name](base)
    after = flat(settings(base))
    missing = object()
    assert before.keys() - after.keys() <= {BANK + 'loss_pairwise'}  # None, now a dict
    assert {k: v for k, v in after.items() if before.get(k, missing) != v} == CHANGES[name]


@pytest.mark.parametrize('name', TARGETS)
@pytest.mark.parametrize('file', [BASE, 'demo/cct_shapes.py'])  # without and with a teacher
def test_a_variant_takes_its_target_elsewhere(name, file, configs):
    config = Config.fromfile(configs / file)
    before = settings(config)
    VARIANTS[name](config)
    after = settings(config)
    hooks = after.pop('custom_hooks')
    others = [hook for hook in before.pop('custom_hooks') if hook['type'] != 'TeacherHook']
    teachers = [dict(type='TeacherHook', decay=decay) for decay in TARGETS[name]]
    assert hooks == others + teachers
    assert after == before


@pytest.mark.parametrize('name', PERTURBATIONS)
def test_a_single_perturbation_keeps_its_decoders_alone(name, base):
    before = flat(settings(base))
    only(name, 5)(base)
    after = flat(settings(base))
    key = f'{BANK}perturbations.{{}}.num_decoders'
    expected = {key.format(each): 5 * (each == name) for each in PERTURBATIONS}
    assert after == {**before, **expected}


def test_full_has_k_decoders_of_each(base):
    full(4)(base)
    decoders = {key: p.num_decoders for key, p in base.model.auxiliary_head.perturbations.items()}
    assert decoders == dict.fromkeys(PERTURBATIONS, 4)


def test_the_grid_of_the_paper():
    methods = grid_methods([2, 4, 6, 8])
    assert len(methods) == 1 + 4 * (7 + 2)
    assert {'baseline', 'vat_k2', 'full_k8', 'full_abce_k6'} < methods.keys()


def test_full_with_abce(base):
    grid_methods([2])['full_abce_k2'](base)
    assert sum(p.num_decoders for p in base.model.auxiliary_head.perturbations.values()) == 14
    (loss,) = base.model.decode_head.loss_decode
    assert (loss.type, loss.threshold) == ('BootstrappedCrossEntropy', 1 / 11)


RULES = {'head.': dict(decay_mult=0.5), 'head': dict(lr_mult=2.0), 'x': dict(lr_mult=7.0)}


@pytest.mark.parametrize(
    ('file', 'paramwise'),
    [
        ('cct/cct_segformer-mit-b0_camvid_50.py', {}),  # adamw.py
        ('cct/cct_dinov2-s_camvid_50.py', {}),  # adamw_vit.py
        ('cct/cct_mbv2-jpu_camvid-180x240_20.py', {}),
        ('demo/cct_shapes.py', dict(paramwise_cfg=None)),
        ('demo/cct_shapes.py', dict(paramwise_cfg=dict(custom_keys=None))),
        ('demo/cct_shapes.py', dict(paramwise_cfg=dict(custom_keys=RULES))),
    ],
)
def test_the_auxiliary_decoders_learn_at_ten_times_their_own_rate(file, paramwise, configs):
    config = Config.fromfile(configs / file)
    forget_initial_weights(config.model)
    config.optim_wrapper.update(paramwise)
    model = MODELS.build(config.model)

    def options():
        wrapper = copy.deepcopy(config.optim_wrapper)
        if wrapper.get('paramwise_cfg') and wrapper.paramwise_cfg.custom_keys is None:
            del wrapper.paramwise_cfg['custom_keys']  # which mmengine does not take
        groups = build_optim_wrapper(model, wrapper).optimizer.param_groups
        found = {id(p): (g['lr'], g['weight_decay']) for g in groups for p in g['params']}
        return {key: found[id(p)] for key, p in model.named_parameters() if id(p) in found}

    before = options()
    VARIANTS['auxiliary_lr'](config)
    factor = {key: 10 if key.startswith('auxiliary_head.') else 1 for key in before}
    expected = {key: (factor[key] * lr, decay) for key, (lr, decay) in before.items()}
    after = options()
    assert {*factor.values()} == {1, 10}
    assert after.keys() == expected.keys()
    for key, values in expected.items():
        assert after[key] == pytest.approx(values), key


@pytest.mark.parametrize('name', VARIANTS)
def test_a_config_may_have_no_hooks_of_its_own(name, base):
    base.custom_hooks = None
    VARIANTS[name](base)


@pytest.mark.parametrize('model', ['deeplabv3plus-r50', 'segformer-mit-b0'])
@pytest.mark.parametrize('name', [*VARIANTS, 'vat_k1', 'full_k1'])
def test_a_variant_of_any_model_changes_the_bank_and_keeps_mmsegs_heads(name, model, configs):
    """In DeepLabV3+ the bank is the second of a list; both leave the paper's perturbations out."""
    config = Config.fromfile(configs / f'cct/cct_{model}_camvid_50.py')
    heads, bank = split_settings(config.model.auxiliary_head)
    before = copy.deepcopy(heads)
    {**VARIANTS, 'vat_k1': only('vat', 1), 'full_k1': full(1)}[name](config)
    heads, bank = split_settings(config.model.auxiliary_head)
    assert heads == before and len(heads) == (model == 'deeplabv3plus-r50')
    assert (bank is None) == (name in ('baseline', 'baseline_abce', 'mean_teacher', 'input_vat'))
    if name == 'baseline':
        path = configs / f'baselines/supervised_{model}_camvid_50.py'
        assert settings(config) == settings(Config.fromfile(path))
    if name == 'vat_k1':
        assert [p.get('num_decoders') for p in bank.perturbations.values()] == [1] + 6 * [0]
    if name == 'vat_floor':
        assert bank.perturbations.vat == dict(type='IntermediateVAT', norm_floor=1e-8)
    config.model.backbone.init_cfg = None
    with torch.device('cpu' if 'segformer' in model else 'meta'):
        MODELS.build(config.model)


@pytest.mark.parametrize('recipe', ['cct-strong', 'cct-plus'])
def test_the_baseline_of_a_recipe_is_that_of_its_cct(recipe, configs):
    """`new_config.py` starts from a recipe, and a learning curve compares it with its baseline."""
    config = Config.fromfile(configs / f'plus/{recipe}_mbv2-jpu_idd-lite_20.py')
    VARIANTS['baseline'](config)
    expected = Config.fromfile(configs / 'baselines/supervised_mbv2-jpu_idd-lite_20.py')
    found = settings(config)
    found['custom_hooks'] = [h for h in found['custom_hooks'] if h['type'] != 'CalibrationHook']
    hooks = settings(expected).pop('custom_hooks')
    assert {**found, 'custom_hooks': hooks} == settings(expected)
    assert sorted(map(str, found['custom_hooks'])) == sorted(map(str, hooks))


def test_a_recipe_without_auxiliary_decoders_is_no_cct(configs):
    config = Config.fromfile(configs / 'plus/fixmatch_mbv2-jpu_idd-lite_20.py')
    with pytest.raises(UserError, match='no PerturbedDecoderBank; expected a config of CCT'):
        VARIANTS['baseline'](config)


@pytest.mark.parametrize('name', ['mean_teacher', 'input_vat'])
def test_a_traditional_method_keeps_nothing_of_a_recipe(name, configs):
    config = Config.fromfile(configs / 'plus/cct-strong_mbv2-jpu_idd-lite_20.py')
    VARIANTS[name](config)
    config.model.backbone.init_cfg = None
    assert type(MODELS.build(config.model)).__name__ == config.model.type


@pytest.mark.parametrize('name', ['mean_teacher', 'input_vat'])
def test_a_traditional_method_keeps_no_ramp_of_the_decoders(name, configs):
    (file,) = configs.glob('**/cct_mbv2_camvid_50-weak.py')
    config = Config.fromfile(file)
    VARIANTS[name](config)
    ramps = [hook.attribute for hook in config.custom_hooks if 'attribute' in hook]
    assert ramps == ['loss_consistency.loss_weight']


STEPPED = {**VARIANTS, 'vat_k1': only('vat', 1), 'feature_drop_k1': only('feature_drop', 1)}


@pytest.mark.parametrize('name', STEPPED)
def test_a_variant_takes_a_step_that_reaches_every_parameter(name, configs):
    """On the demo's small model and data; so DDP runs without `find_unused_parameters`."""
    torch.manual_seed(0)
    config = Config.fromfile(configs / 'demo' / 'cct_shapes.py')
    if name == 'vat_floor':
        config.model.auxiliary_head.perturbations.vat.num_decoders = 1
    STEPPED[name](config)
    if config.model.auxiliary_head is not None:
        config.model.auxiliary_head.compile = False
    config.train_dataloader.update(batch_size=2, num_workers=0, persistent_workers=False)
    batch = next(iter(Runner.build_dataloader(config.train_dataloader, seed=0)))
    model = MODELS.build(config.model)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    gradients = {}
    wrapper.optimizer.register_step_pre_hook(
        lambda *_: gradients.update({key: item.grad for key, item in model.named_parameters()})
    )
    if hasattr(model, 'set_teacher'):  # as TeacherHook does
        model.set_teacher(copy.deepcopy(model).eval())
    model.train()
    for hook in config.custom_hooks:
        if hook.type == 'RampUpHook':
            messages = SimpleNamespace(update_scalar=lambda *_: None)
            runner = SimpleNamespace(model=model, iter=100, max_iters=100, message_hub=messages)
            HOOKS.build(hook).before_train_iter(runner, 100)
    losses = model.train_step(batch, wrapper)
    assert torch.isfinite(losses['loss'])
    assert losses.keys() >= ({'decode.loss_abce'} if 'abce' in name else {'decode.loss_ce'})
    assert gradients
    assert [key for key, value in gradients.items() if value is None] == []


@pytest.mark.parametrize('variant', [full(2), VARIANTS['kl'], VARIANTS['mean_teacher']])
def test_a_config_without_auxiliary_decoders_is_an_error(variant, base):
    VARIANTS['baseline'](base)
    with pytest.raises(UserError, match='auxiliary_head has no PerturbedDecoderBank'):
        variant(base)


@pytest.mark.parametrize('vat', [dict(num_decoders=0), None])
def test_a_floor_of_a_vat_without_decoders_is_an_error(vat, base):
    perturbations = base.model.auxiliary_head.perturbations
    perturbations.vat = vat and {**perturbations.vat, **vat}
    with pytest.raises(UserError, match=r'vat has no decoders, so that vat_floor would repeat cct'):
        VARIANTS['vat_floor'](base)


def test_an_unknown_perturbation_is_an_error(base):
    with pytest.raises(UserError, match="no perturbation 'blur'; expected one of vat, dropout"):
        only('blur', 2)(base)
