"""Converted weights against the authors' own code, run side by side."""

import sys

import pytest
import torch
from _public_code import load_public_code
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS

from mmseg_cct.interop import to_project, to_public
from mmseg_cct.models.layers.stacked_decoders import decode
from mmseg_cct.models.layers.subpixel import from_subpixel_layout

SIZE = (72, 104)
DECODERS = dict(
    vat=2, drop=6, cutout=6, context_masking=2, object_masking=2, feature_drop=6, feature_noise=6
)


@pytest.fixture(scope='module')
def public_model(request, project_root):
    """The public `CCT` with random weights and random statistics of its normalisation."""
    clone = request.config.getoption('--reference')
    if clone is None:
        pytest.skip(
            "needs the authors' public code: --reference DIR, a clone of github.com/yassouali/CCT"
        )
    before = dict(sys.modules)
    code = load_public_code(clone)
    conf = dict(
        DECODERS,
        supervised=False,
        semi=True,
        un_loss='MSE',
        supervised_w=1,
        softmax_temp=1,
        sup_loss='CE',
        aux_constraint=False,
        aux_constraint_w=1,
        confidence_th=0.5,
        confidence_masking=False,
        xi=1e-6,
        eps=2.0,
        drop_rate=0.5,
        spatial=True,
        erase=0.4,
        uniform_range=0.3,
    )
    torch.manual_seed(0)
    model = code.model.CCT(21, conf, testing=True, pretrained=None).eval()
    for name in set(sys.modules) - set(before):
        if name.split('.')[0] in ('models', 'utils', 'base'):
            sys.modules.pop(name)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.3, 0.3)
            torch.nn.init.uniform_(module.running_mean, -0.3, 0.3)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    # predictions of the order of 1: differences are absolute ones
    for parameter in model.encoder.psp.bottleneck[1].parameters():
        parameter.data.mul_(0.01)
    return model


@pytest.fixture(scope='module')
def converted(public_model, project_root):
    config = Config.fromfile(project_root / 'configs/public/cct_r50_voc_1464.py')
    init_default_scope('mmseg')
    config.model.auxiliary_head.compile = False
    model = MODELS.build(config.model).eval()
    model.load_state_dict(to_project(public_model.state_dict()).state)
    return model


@pytest.fixture(scope='module')
def image():
    return torch.randn(2, 3, *SIZE, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_the_main_prediction_is_the_public_codes(public_model, converted, image):
    expected = public_model(image)
    actual = converted(image, mode='tensor')
    assert expected.shape == actual.shape == (2, 21, *SIZE)
    assert expected.max() > 1 and expected.std() > 0.1  # no constant map
    assert (actual - expected).abs().max() <= 1e-4


@torch.no_grad()
def test_auxiliary_decoders_are_the_public_codes(public_model, converted, image):
    """Without a perturbation: what each of them makes of the same features."""
    z = public_model.encoder(image)
    bank = converted.auxiliary_head
    group = bank.group(slice(0, bank.num_decoders))
    projected = group.project(z.flatten(2)).transpose(1, 2).flatten(2)
    n, _, h, w = z.shape
    for decoder, values in zip(public_model.aux_decoders, decode(projected, bank.chain)):
        expected = decoder.upsample(z)
        actual = from_subpixel_layout(values, (n, h, w), 8)
        assert (actual - expected).abs().max() <= 1e-4


def test_the_public_code_loads_what_was_converted_back(public_model, converted):
    state = to_public(converted.state_dict()).state
    for name, value in torch.nn.DataParallel(public_model).state_dict().items():
        assert torch.equal(state.pop(name), value), name
    assert not state
