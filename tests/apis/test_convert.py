"""Names, orders and files of the conversion; nothing here needs the public code."""

import io
import itertools
import zipfile

import numpy as np
import pytest
import torch
from mmseg.registry import MODELS
from mmseg.utils import get_classes
from public_state import C, D, K, public_state

from mmseg_cct.apis.convert import BACKBONE_NAMES, backbone_to_mmseg, convert_file, to_project
from mmseg_cct.config.load import load_config
from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.models import PerturbedDecoderBank, PixelShuffleHead
from mmseg_cct.preflight.settings import check_pretrained_weights


def public_file(path):
    content = dict(arch='DataParallel', epoch=40, config=dict(name='CCT', n_gpu=1))
    content |= dict(state_dict=public_state(), monitor_best=np.float64(0.69))
    torch.save(content, path)


def test_a_file_is_converted_and_of_21_classes_the_names_are_known(tmp_path):
    source, ours = (str(tmp_path / name) for name in ('in.pth', 'ours/out.pth'))
    public_file(source)
    done = convert_file(source, ours)
    assert (done.num_classes, done.num_decoders) == (C, K)
    assert 'dataset_meta' not in torch.load(ours, weights_only=False)['meta']

    # counters of batches may be missing
    state = {n: v for n, v in public_state(0).items() if not n.endswith('num_batches_tracked')}
    state['module.main_decoder.upsample.0.weight'] = torch.zeros(21, D, 1, 1)
    torch.save(state, source)  # bare
    convert_file(source, ours)
    meta = torch.load(ours, weights_only=False)['meta']['dataset_meta']
    assert list(meta['classes']) == get_classes('voc') and len(meta['palette']) == 21


def test_files_of_an_old_numpy_need_no_unsafe_loader(tmp_path, capsys):
    """They hold their best score as a numpy scalar, by the name that numpy 1 had for it."""
    buffer = io.BytesIO()
    public_file(buffer)
    with zipfile.ZipFile(buffer) as new, zipfile.ZipFile(tmp_path / 'old.pth', 'w') as old:
        for item in new.infolist():
            data = new.read(item)
            if item.filename.endswith('data.pkl'):
                data = data.replace(b'cnumpy._core.multiarray\n', b'cnumpy.core.multiarray\n')
                assert b'cnumpy.core.multiarray\n' in data
            old.writestr(item, data)
    assert read_checkpoint(str(tmp_path / 'old.pth'))['monitor_best'] == 0.69
    assert 'Could not safely load' not in ''.join(capsys.readouterr())


@pytest.mark.parametrize('name', ['features.0.bias', 'decode_head.conv_seg.weight'])
def test_files_of_others_and_our_own_are_refused(tmp_path, name):
    source, out = (str(tmp_path / name) for name in ('in.pth', 'out.pth'))
    torch.save(dict(state_dict={name: torch.zeros(1)}), source)
    with pytest.raises(UserError) as error:
        convert_file(source, out)
    assert error.value.problems[0].key == source
    assert list(tmp_path.iterdir()) == [tmp_path / 'in.pth']


def test_their_imagenet_weights_start_the_shipped_backbone(tmp_path, monkeypatch):
    """By the names that their `models/backbones/resnet_models.py` gives; the classifier is left."""
    monkeypatch.chdir(tmp_path)
    config = load_config('public/cct_r50_voc_1464', {})
    expected = MODELS.build(dict(config.model.backbone, init_cfg=None)).state_dict()
    theirs = {
        name: torch.rand_like(expected[ours], dtype=torch.float32)
        for name, ours in BACKBONE_NAMES.items()
    }
    assert {'layer1.0.downsample.1.running_var', 'prefix.bn3.weight'} < theirs.keys()
    bare = {name.removeprefix('prefix.'): value for name, value in theirs.items()}
    assert backbone_to_mmseg(bare) == backbone_to_mmseg(theirs)  # the same tensors
    torch.save({**bare, 'fc.weight': torch.zeros(1000, 2048)}, 'theirs.pth')
    (tmp_path / 'data').mkdir()
    done = convert_file('theirs.pth', config.model.backbone.init_cfg.checkpoint)
    assert (len(done.state), done.missing, done.unexpected) == (len(expected), [], [])
    check_pretrained_weights(config.model)
    backbone = MODELS.build(config.model.backbone)
    backbone.init_weights()
    stem = backbone.state_dict()['stem.6.weight']
    assert stem.shape == (128, 64, 3, 3) and torch.equal(stem, theirs['prefix.conv3.weight'])


def part_of(state, prefix):
    return {n.removeprefix(prefix): value for n, value in state.items() if n.startswith(prefix)}


def plain_decoder(state, prefix, z):
    """The decoder at every feature position on its own, `(D, h, w)` → `(C, 8h, 8w)`."""
    _, h, w = z.shape
    result = torch.empty(C, 8 * h, 8 * w)
    projection = state[f'{prefix}.upsample.0.weight'][..., 0, 0]
    for y, x in itertools.product(range(h), range(w)):
        cell = {(0, 0): projection @ z[:, y, x]}  # offset in the cell → C values
        for level in (1, 2, 3):
            weight = state[f'{prefix}.upsample.{level}.conv.weight'][..., 0, 0]
            bias = state[f'{prefix}.upsample.{level}.conv.bias']
            finer = {}
            for (dy, dx), value in cell.items():
                up = (weight @ value + bias).clamp(min=0)
                for i, j in itertools.product(range(2), range(2)):
                    # class c, sub-pixel (i, j) is row 4c + 2i + j
                    finer[2 * dy + i, 2 * dx + j] = up[2 * i + j :: 4]
            cell = finer
        for (dy, dx), value in cell.items():
            result[:, 8 * y + dy, 8 * x + dx] = value
    return result


def test_every_weight_of_the_shipped_model_has_a_public_name():
    model = load_config('public/cct_r50_voc_1464', {}).model
    assert model.decode_head.final_activation and model.auxiliary_head.final_activation
    renamed = to_project(public_state(30))
    assert (renamed.missing, renamed.unexpected, renamed.num_decoders) == ([], [], 30)
    assert renamed.state.keys() == MODELS.build(model).state_dict().keys()
    # the module list of the public code's `CCT`: its config's numbers in this order
    expected = dict(vat=2, dropout=6, guided_cutout=6, context_masking=2, object_masking=2)
    expected |= dict(feature_drop=6, feature_noise=6)
    numbers = {name: item.num_decoders for name, item in model.auxiliary_head.perturbations.items()}
    assert list(numbers.items()) == list(expected.items())


def test_each_decoder_is_the_equation_in_its_place():
    state, z = public_state(module=False), torch.randn(1, D, 2, 3)
    renamed = to_project(state).state
    head = PixelShuffleHead(D, C, stride=8, final_activation=True)
    head.load_state_dict(part_of(renamed, 'decode_head.'))
    expected = plain_decoder(state, 'main_decoder', z[0])
    assert (expected > 0).any() and (expected == 0).any()
    torch.testing.assert_close(head((z,))[0], expected, rtol=1e-5, atol=1e-5)

    silent = dict(type='FeatureNoise', noise_range=0.0)
    perturbations = dict(a=dict(silent, num_decoders=1), b=dict(silent, num_decoders=K - 1))
    options = dict(context_classes=(0,), compile=False, final_activation=True)
    bank = PerturbedDecoderBank(D, C, perturbations, dict(type='MSEConsistency'), **options)
    bank.load_state_dict(part_of(renamed, 'auxiliary_head.'))
    with torch.no_grad():
        actual = bank((z,), torch.randn(1, C, 16, 24))[:, 0]
    for index in range(K):
        expected = plain_decoder(state, f'aux_decoders.{index}', z[0])
        torch.testing.assert_close(actual[index], expected, rtol=1e-5, atol=1e-5)
