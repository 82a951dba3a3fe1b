import any_heads
import pytest
import torch

CASCADES = [name for name, (_, head, _) in any_heads.HEADS.items() if isinstance(head, list)]


@any_heads.each_head
def test_it_predicts_by_its_last_head_as_mmseg_does(name):
    if name not in CASCADES:
        pytest.skip('one head')
    model, plain = any_heads.build(name, 'CCTSegmentor').eval(), any_heads.build(name).eval()
    model.load_state_dict(plain.state_dict())
    images, metas = torch.randn(2, 3, *any_heads.SIZE), [dict(img_shape=any_heads.SIZE)] * 2
    with torch.no_grad():
        assert torch.equal(model.encode_decode(images, metas), plain.encode_decode(images, metas))
    last = model.decode_head[-1]
    assert (model.num_classes, model.decode_head.ignore_index) == (any_heads.C, last.ignore_index)
