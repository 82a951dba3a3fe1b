"""Converted weights against the authors' own code, run side by side."""

import copy
import shutil
import sys

import pytest
import torch
from _public_code import load_public_code
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.apis.convert import backbone_to_mmseg, to_project
from mmseg_cct.models.layers.native_chain import NativeChain
from mmseg_cct.models.perturbations import IntermediateVAT, intermediate_vat

SIZE = (72, 104)
DECODERS = dict(
    vat=2, drop=6, cutout=6, context_masking=2, object_masking=2, feature_drop=6, feature_noise=6
)

SAMPLES = [SegDataSample(metainfo=dict(classes=('background', *map(str, range(1, 21)))))] * 2


@pytest.fixture(scope='module')
def public_code(request):
    clone = request.config.getoption('--reference')
    if clone is None:
        pytest.skip(
            "needs the authors' public code: --reference=DIR, a clone of github.com/yassouali/CCT"
        )
    before = dict(sys.modules)
    code = load_public_code(clone)
    for name in set(sys.modules) - set(before):
        if name.split('.')[0] in ('models', 'utils', 'base'):
            sys.modules.pop(name)
    return code


@pytest.fixture(scope='module')
def public_model(public_code):
    """The public `CCT` with random weights and random statistics of its normalisation."""
    conf = dict(DECODERS, supervised=False, semi=True, supervised_w=1, softmax_temp=1)
    conf |= dict(sup_loss='CE', un_loss='MSE', aux_constraint=False, aux_constraint_w=1)
    conf |= dict(confidence_th=0.5, confidence_masking=False, drop_rate=0.5, spatial=True)
    conf |= dict(xi=1e-6, eps=2.0, erase=0.4, uniform_range=0.3)
    torch.manual_seed(0)
    model = public_code.model.CCT(21, conf, testing=True, pretrained=None).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for values in (module.weight, module.running_var):
                torch.nn.init.uniform_(values, 0.5, 1.5)
            for values in (module.bias, module.running_mean):
                torch.nn.init.uniform_(values, -0.3, 0.3)
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


def test_their_imagenet_network_has_these_names(public_code):
    backbone = public_code.model.Encoder.__init__.__globals__['ResNetBackbone']
    state = backbone.__globals__['deepbase_resnet50'](pretrained=None).state_dict()
    renamed = backbone_to_mmseg(state)
    assert (renamed.missing, renamed.unexpected) == ([], [])
    assert len(renamed.state) == len(state) - 2  # fc


@pytest.fixture(params=[False, 'auto'], ids=['eager', 'native'])
def bank(request, converted, monkeypatch):
    """The converted bank by PyTorch or by the native kernel, which must then have run."""
    native = request.param == 'auto'
    if native and not (shutil.which('g++') or shutil.which('clang++')):
        pytest.skip('no C++ compiler')
    calls = []
    for name in ('losses', 'fisher_product'):
        original = getattr(NativeChain, name)

        def spy(*args, original=original):
            calls.append(original)
            return original(*args)

        monkeypatch.setattr(NativeChain, name, spy)
    monkeypatch.setattr(converted.auxiliary_head.chunking, 'compile', request.param)
    yield converted.auxiliary_head
    assert bool(calls) == native


def distance(actual, expected):
    """Of two lists of tensors, relative to the expected one's norm."""
    actual, expected = (torch.cat([t.double().flatten() for t in ts]) for ts in (actual, expected))
    return (actual - expected).norm() / expected.norm()


def test_losses_and_gradients_are_theirs(public_code, public_model, bank, image, monkeypatch):
    """L_u of the unperturbed auxiliary decoders, whose masks and noise are other draws."""
    group = bank.group(slice(0, bank.num_decoders))
    monkeypatch.setattr(
        bank,
        '_project_all',
        lambda context: group.project(context.features.flatten(2)).transpose(1, 2).flatten(2),
    )
    with torch.no_grad():
        z, seg_logits = public_model.encoder(image), public_model(image)
    z.requires_grad_()
    losses = bank.loss((z,), seg_logits, SAMPLES)
    own = dict(bank.named_parameters())
    weight = bank.loss_consistency.loss_weight
    grad, *grads = torch.autograd.grad(losses['loss'] / weight, [z, *own.values()])

    theirs = {f'aux_decoders.{n}': p for n, p in public_model.aux_decoders.named_parameters()}
    expected = public_code.consistency(
        [decoder.upsample(z) for decoder in public_model.aux_decoders], seg_logits.softmax(1)
    )
    expected_grad, *expected_grads = torch.autograd.grad(expected, [z, *theirs.values()])
    as_ours = to_project({**public_model.state_dict(), **dict(zip(theirs, expected_grads))}).state

    assert losses['consistency'].item() == pytest.approx(expected.item(), rel=1e-5)
    # Of some 12 million inputs of ReLUs about one is so near to 0 that rounding decides its sign.
    # It moves the gradients by the root of its share: 1e-3 of their norm in the first level, which
    # has 0.6 million.
    assert distance([grad], [expected_grad]) <= 1e-3
    assert distance(grads, [as_ours[f'auxiliary_head.{name}'] for name in own]) <= 1e-3


def test_adversarial_noise_is_the_public_codes(public_code, public_model, bank, image, monkeypatch):
    """With the noise that it starts from: the public finite difference in float64."""
    xi = 1e-4  # the difference is off by about as much, and float64 resolves it further
    with torch.no_grad():
        z, seg_logits = public_model.encoder(image), public_model(image)
    shared = bank._context((z,), seg_logits, SAMPLES)
    group = bank.group(slice(0, DECODERS['vat']))
    drawn = []
    original = intermediate_vat._projected_noise
    monkeypatch.setattr(
        intermediate_vat,
        '_projected_noise',
        lambda *args: drawn.append(original(*args)) or drawn[-1],
    )
    setting = IntermediateVAT(DECODERS['vat'], epsilon=2.0, xi=xi, norm_floor=1e-8)
    torch.manual_seed(0)
    with torch.no_grad():
        actual = setting.perturb(group, shared) - z.flatten(2)

    (projected,) = drawn
    for k, decoder in enumerate(public_model.aux_decoders[: DECODERS['vat']]):
        decoder = copy.deepcopy(decoder.upsample).double()
        w = decoder[0].weight.detach().flatten(1)
        # what the decoder does not see of the noise makes up the length that the floor is for
        inverse, rest = torch.linalg.pinv(w), torch.randn_like(z).double().flatten(2)
        seen, rest = inverse @ projected[k].double(), rest - inverse @ (w @ rest)
        squares = [part.square().sum((1, 2), keepdim=True) for part in (seen, rest)]
        noise = seen + rest * ((z[0].numel() - squares[0]) / squares[1]).sqrt()
        noise = noise.unflatten(-1, z.shape[-2:])
        with monkeypatch.context() as patch:
            patch.setattr(torch, 'rand', lambda shape, noise=noise: noise + 0.5)
            expected = public_code.decoders.get_r_adv(z.double(), decoder, it=1, xi=xi, eps=2.0)
        assert distance([actual[k]], [expected.flatten(2)]) <= xi
