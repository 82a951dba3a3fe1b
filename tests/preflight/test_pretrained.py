"""Pretrained weights fit the module that loads them."""

import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.preflight.pretrained import check_pretrained_weights

NETWORK = dict(type='mmseg.ResNet', depth=18, base_channels=4, stem_channels=4)


@pytest.fixture
def weights(tmp_path):
    """Saves the weights of a network, as a change makes them, and gives the file."""

    def save(change=lambda state: state, **settings):
        state = MODELS.build({**NETWORK, **settings}).state_dict()
        torch.save(dict(state_dict=change(dict(state))), tmp_path / 'w.pth')
        return str(tmp_path / 'w.pth')

    return save


def network(file, **init):
    init_cfg = dict(type='Pretrained', checkpoint=file, **init)
    return dict(type='EncoderDecoder', backbone=dict(NETWORK, init_cfg=init_cfg))


def renamed(prefix):
    return lambda state: {prefix + name: value for name, value in state.items()}


def test_weights_that_fit_pass(weights):
    check_pretrained_weights(network(weights()))
    check_pretrained_weights(network(weights(renamed('module.'))))
    check_pretrained_weights(network(weights(renamed('backbone.')), prefix='backbone.'))
    # a classifier on top, and a part that is missing
    with_more = weights(lambda state: {**state, 'fc.weight': torch.ones(10, 32)})
    check_pretrained_weights(network(with_more))
    check_pretrained_weights(dict(backbone=dict(NETWORK)))


def test_weights_of_another_network_are_refused(weights):
    with pytest.raises(UserError) as error:
        check_pretrained_weights(network(weights(base_channels=8)))
    assert 'weights in another shape than mmseg.ResNet, the first is ' in str(error.value)
    with pytest.raises(UserError, match=r'w\.pth has 0 of the \d+ weights of mmseg\.ResNet'):
        check_pretrained_weights(network(weights(renamed('other_'))))


def test_a_prefix_that_is_missing_is_named(weights):
    with pytest.raises(UserError, match=r"set model\.backbone\.init_cfg\.prefix='backbone\.'"):
        check_pretrained_weights(network(weights(renamed('backbone.'))))


def test_weights_for_a_transformer_of_timm_are_compared_without_its_own(tmp_path, monkeypatch):
    pytest.importorskip('timm')

    def fail(*_, **__):
        raise OSError('no route to host')

    monkeypatch.setattr('timm.models._builder.load_state_dict_from_hf', fail)
    path, sizes = str(tmp_path / 'weights.pth'), dict(embed_dim=12, num_heads=3, depth=2)
    name = dict(type='TimmViT', model_name='vit_small_patch16_dinov3.lvd1689m', out_indices=(0, 1))
    built = MODELS.build(dict(name, pretrained=False, **sizes))
    torch.save(built.state_dict(), path)
    init_cfg = dict(type='Pretrained', checkpoint=path)
    check_pretrained_weights(dict(backbone=dict(name, init_cfg=init_cfg, **sizes)))
    sizes['embed_dim'] = 24
    with pytest.raises(UserError, match='in another shape than TimmViT'):
        check_pretrained_weights(dict(backbone=dict(name, init_cfg=init_cfg, **sizes)))


def test_what_is_no_checkpoint_is_refused(tmp_path):
    (tmp_path / 'w.pth').write_text('<html>')
    with pytest.raises(UserError, match=r'w\.pth: cannot be read .*; expected a whole file'):
        check_pretrained_weights(network(str(tmp_path / 'w.pth')))
