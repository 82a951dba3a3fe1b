"""What the ablation changes, against the configs that are shipped."""

import pytest
from mmengine.config import Config

from mmseg_cct.errors import UserError
from mmseg_cct.studies.ablation import grid_methods
from mmseg_cct.studies.variants import PERTURBATIONS, VARIANTS, full, only

BASE = 'configs/cct/cct_mbv2_camvid_50.py'
SHIPPED = {
    'baseline': 'baselines/supervised_mbv2_camvid_50.py',
    'baseline_abce': 'ablation/supervised_mbv2_camvid_50_abce.py',
    'mean_teacher': 'baselines/mean-teacher_mbv2_camvid_50.py',
    'input_vat': 'baselines/input-vat_mbv2_camvid_50.py',
    'cct': 'cct/cct_mbv2_camvid_50.py',
    **{name: f'ablation/cct_mbv2_camvid_50_{name}.py' for name in (
        'abce', 'kl', 'js', 'confidence', 'pairwise', 'final_relu', 'vat_floor', 'positions',
        'auxiliary_lr')},
}  # fmt: skip


@pytest.fixture
def base(project_root):
    return Config.fromfile(project_root / BASE)


def settings(config):
    """Without the helper names that a leaf may bring."""
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


def test_every_variant_has_its_config():
    assert SHIPPED.keys() == VARIANTS.keys()


@pytest.mark.parametrize('name', VARIANTS)
def test_a_variant_is_the_shipped_config(name, base, project_root):
    VARIANTS[name](base)
    assert settings(base) == settings(Config.fromfile(project_root / 'configs' / SHIPPED[name]))


@pytest.mark.parametrize('name', PERTURBATIONS)
def test_a_single_perturbation_is_the_shipped_config(name, base, project_root):
    only(name, 6)(base)
    leaf = f'configs/ablation/cct_mbv2_camvid_50_only_{name}.py'
    assert settings(base) == settings(Config.fromfile(project_root / leaf))


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


@pytest.mark.parametrize('variant', [full(2), VARIANTS['kl'], VARIANTS['mean_teacher']])
def test_a_config_without_auxiliary_decoders_is_an_error(variant, base):
    VARIANTS['baseline'](base)
    with pytest.raises(UserError, match='auxiliary_head has no perturbations'):
        variant(base)


def test_an_unknown_perturbation_is_an_error(base):
    with pytest.raises(UserError, match="no perturbation 'blur'; expected one of vat, dropout"):
        only('blur', 2)(base)
