import pytest
import torch
from folders import load, write
from mmseg.registry import MODELS
from settings import DISTINCT

from mmseg_cct.errors import UserError
from mmseg_cct.writer.choices import BACKBONES

# The others make a step in tests/test_configs.py, where a transformer of timm is narrower.
NOT_STEPPED = [name for name in BACKBONES if f'models/{name}' not in DISTINCT or 'dino' in name]


@pytest.mark.slow
@pytest.mark.parametrize('name', NOT_STEPPED)
def test_every_backbone_builds_and_segments(data, name):
    if 'dino' in name:
        pytest.importorskip('timm')
    frozen = name.endswith('-frozen')
    config = load(data, backbone=name, method='cct', from_scratch=not frozen)
    assert frozen or config.optim_wrapper.paramwise_cfg is None
    heads = config.model.auxiliary_head
    *heads, bank = heads if isinstance(heads, list) else [heads]
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


def test_from_scratch_the_backbone_learns_as_fast_as_the_rest(data):
    config = load(data, backbone='r18', from_scratch=True)
    assert config.model.backbone.init_cfg is None
    assert config.optim_wrapper.paramwise_cfg is None
    assert config.optim_wrapper.optimizer.type == 'AdamW'


def test_weights_of_a_file_are_named_with_their_prefix(data, tmp_path):
    backbone = MODELS.build(dict(type='mmseg.MobileNetV2', out_indices=(2, 4, 6)))
    state = {f'backbone.{name}': value for name, value in backbone.state_dict().items()}
    torch.save(dict(state_dict=state), tmp_path / 'w.pth')
    init = load(data, weights=str(tmp_path / 'w.pth')).model.backbone.init_cfg
    assert (init.checkpoint, init.prefix) == (str(tmp_path / 'w.pth'), 'backbone.')
    with pytest.raises(UserError, match=r'w\.pth has 0 of the \d+ weights of ResNetV1c'):
        write(data, weights=str(tmp_path / 'w.pth'), backbone='r18')
