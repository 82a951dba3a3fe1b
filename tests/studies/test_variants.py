"""What the ablation's methods change, and the overlays of the paper's grid."""

import pytest

from mmseg_cct.config.compose import find_bank, merge_method, read_method
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.studies.ablation import grid_methods
from mmseg_cct.studies.variants import PERTURBATIONS, full, full_abce, only

BASE = 'cct/cct_r50_camvid_50'
DEMO = 'demo/cct_shapes'  # the student itself is the teacher, in eval mode
BANK = 'model.auxiliary_head.'
# Methods by the settings that they change.
CHANGES = {
    'kl': {BANK + 'loss_consistency.type': 'KLConsistency'},
    'js': {BANK + 'loss_consistency.type': 'JSConsistency'},
    'confidence': {BANK + 'loss_consistency.confidence_threshold': 0.5},
    'pairwise': {
        BANK + 'loss_pairwise.type': 'PairwiseVariance',
        BANK + 'loss_pairwise.loss_weight': 1.0,
    },
    'final-relu': {BANK + 'final_activation': True, 'model.decode_head.final_activation': True},
    'vat-floor': {BANK + 'perturbations.vat.norm_floor': 1e-8},
    'positions': {BANK + 'position_fraction': 0.25},
    'auxiliary-lr': {
        'optim_wrapper.paramwise_cfg.auxiliary_lr_mult': 10.0,
    },
}


@pytest.fixture
def base():
    return load_config(BASE, {})


def flat(values, prefix=''):
    """Settings by dotted key."""
    found = {}
    for key, value in values.items():
        name = f'{prefix}{key}'
        found |= flat(value, f'{name}.') if isinstance(value, dict) else {name: value}
    return found


def changes(config, overlay):
    """What an overlay adds or changes; it removes nothing."""
    before = flat(config.to_dict())
    merge_method(config, overlay)
    after = flat(config.to_dict())
    assert before.keys() <= after.keys()
    missing = object()
    return {key: value for key, value in after.items() if before.get(key, missing) != value}


@pytest.mark.parametrize('name', CHANGES)
def test_a_method_changes_nothing_else(name, base):
    assert changes(base, read_method(name)) == CHANGES[name]


@pytest.mark.parametrize(
    ('name', 'decay'),
    [('own-target', None), ('eval-target', 1e-6), ('ema-target', 0.99), ('mean-teacher', 0.99)],
)
@pytest.mark.parametrize('file', [BASE, DEMO])
def test_a_method_takes_its_target_elsewhere(name, decay, file):
    teacher = load_config(file, {'method': name}).default_hooks.get('teacher')
    assert (teacher and teacher.decay) == decay


def test_the_grid_of_the_paper(base):
    methods = grid_methods(base, [2, 4, 6, 8])
    assert len(methods) == 2 + 4 * (7 + 2)
    assert {'supervised', 'supervised-abce', 'vat_k2', 'full_k8', 'full_abce_k6'} < methods.keys()


def test_the_grid_has_the_settings_own_perturbations(base):
    find_bank(base).perturbations = dict(mine=dict(type='SpatialDropout'))
    assert {'mine_k1', 'full_k1', 'full_abce_k1'} < grid_methods(base, [1]).keys()
    assert grid_methods(base, [1], ['mine']).keys() == grid_methods(base, [1]).keys()


@pytest.mark.parametrize('name', PERTURBATIONS)
def test_a_single_perturbation_keeps_its_decoders_alone(name, base):
    assert changes(base, only(base, name, 5)) == {
        f'{BANK}perturbations.{each}.num_decoders': 5 * (each == name) for each in PERTURBATIONS
    }


@pytest.mark.parametrize('make', [full, full_abce])
@pytest.mark.parametrize('file', [BASE, 'cct/cct_deeplabv3plus-r50_camvid_50'])
def test_full_has_k_decoders_of_each(make, file):
    """In DeepLabV3+ the bank is the second of a list, and leaves out the paper's perturbations."""
    config = load_config(file, {})
    heads = config.model.auxiliary_head
    merge_method(config, make(config, 4))
    numbers = {key: p.num_decoders for key, p in find_bank(config).perturbations.items()}
    assert numbers == dict.fromkeys(PERTURBATIONS, 4)
    assert isinstance(config.model.auxiliary_head, list) == isinstance(heads, list)
    losses = config.model.decode_head.loss_decode
    if make is full_abce:
        assert [loss.type for loss in losses] == ['BootstrappedCrossEntropy']
    assert ('bootstrap' in config.default_hooks) == (make is full_abce)


@pytest.mark.parametrize('make', [lambda config: only(config, 'vat', 1), lambda c: full(c, 2)])
def test_a_config_without_auxiliary_decoders_is_an_error(make):
    with pytest.raises(UserError, match='auxiliary_head has no PerturbedDecoderBank'):
        make(load_config(BASE, {'method': 'supervised'}))


def test_an_unknown_perturbation_is_an_error(base):
    with pytest.raises(UserError, match="no perturbation 'blur'; expected one of vat, dropout"):
        only(base, 'blur', 2)
