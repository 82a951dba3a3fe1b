"""Names, orders and files of the conversion; nothing here needs the public code."""

import io
import zipfile

import numpy as np
import pytest
import torch
from mmseg.registry import MODELS
from mmseg.utils import get_classes
from public_state import C, D, K, public_state

from mmseg_cct.config.load import load_config
from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.interop.convert import convert_file
from mmseg_cct.interop.public_names import BACKBONE_NAMES
from mmseg_cct.preflight.pretrained import check_pretrained_weights


def public_file(path):
    content = dict(arch='DataParallel', epoch=40, config=dict(name='CCT', n_gpu=1))
    content |= dict(state_dict=public_state(), monitor_best=np.float64(0.69))
    torch.save(content, path)


def test_a_file_is_converted(tmp_path):
    source, ours = (str(tmp_path / name) for name in ('in.pth', 'ours/out.pth'))
    public_file(source)
    done = convert_file(source, ours)
    assert (done.num_classes, done.num_decoders) == (C, K)
    assert 'dataset_meta' not in torch.load(ours, weights_only=False)['meta']
    with pytest.raises(UserError, match=r"out\.pth: has this project's names already"):
        convert_file(ours, source)


def test_of_21_classes_the_names_are_known_and_a_bare_state_dict_is_taken(tmp_path):
    state = public_state(0)
    state['module.main_decoder.upsample.0.weight'] = torch.zeros(21, D, 1, 1)
    torch.save(state, tmp_path / 'in.pth')
    convert_file(str(tmp_path / 'in.pth'), str(tmp_path / 'out.pth'))
    meta = torch.load(tmp_path / 'out.pth', weights_only=False)['meta']['dataset_meta']
    assert list(meta['classes']) == get_classes('voc')
    assert len(meta['palette']) == 21


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


@pytest.mark.parametrize(
    ('content', 'match'),
    [
        (dict(state_dict={'features.0.bias': torch.zeros(1)}), r'named features; expected encoder'),
        (dict(state_dict={}), r'holds no weights; expected a checkpoint'),
        ([1, 2], r'holds no weights; expected a checkpoint'),
    ],
)
def test_other_files_are_refused(tmp_path, content, match):
    torch.save(content, tmp_path / 'in.pth')
    with pytest.raises(UserError, match=rf'in\.pth: .*{match}'):
        convert_file(str(tmp_path / 'in.pth'), str(tmp_path / 'out.pth'))
    assert not (tmp_path / 'out.pth').exists()


def test_what_does_not_match_is_written_only_on_demand(tmp_path):
    state, out = public_state(), tmp_path / 'out.pth'
    del state['module.encoder.psp.bottleneck.0.weight']
    torch.save(state, tmp_path / 'in.pth')
    arguments = str(tmp_path / 'in.pth'), str(out)
    assert convert_file(*arguments).missing == ['encoder.psp.bottleneck.0.weight']
    assert not out.exists()
    convert_file(*arguments, partial=True)
    assert out.exists()


@pytest.mark.parametrize('prefix', ['prefix.', ''])
def test_their_imagenet_weights_start_the_shipped_backbone(prefix, tmp_path, monkeypatch):
    """By the names that their `models/backbones/resnet_models.py` gives; the classifier is left."""
    monkeypatch.chdir(tmp_path)
    config = load_config('public/cct_r50_voc_1464', {})
    expected = MODELS.build(dict(config.model.backbone, init_cfg=None)).state_dict()
    theirs = {
        name.replace('prefix.', prefix): torch.rand_like(expected[ours], dtype=torch.float32)
        for name, ours in BACKBONE_NAMES.items()
    }
    assert {'layer1.0.downsample.1.running_var', f'{prefix}bn3.weight'} < theirs.keys()
    torch.save({**theirs, 'fc.weight': torch.zeros(1000, 2048)}, 'theirs.pth')
    (tmp_path / 'data').mkdir()
    done = convert_file('theirs.pth', config.model.backbone.init_cfg.checkpoint)
    assert (len(done.state), done.missing, done.unexpected) == (len(expected), [], [])
    check_pretrained_weights(config.model)
    backbone = MODELS.build(config.model.backbone)
    backbone.init_weights()
    stem = backbone.state_dict()['stem.6.weight']
    assert stem.shape == (128, 64, 3, 3) and torch.equal(stem, theirs[f'{prefix}conv3.weight'])
