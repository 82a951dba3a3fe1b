import any_heads
import pytest
import torch
from mmseg.models.decode_heads import MaskFormerHead
from torch import nn

from mmseg_cct.models.heads.main_logits import fused_layer, main_logits
from mmseg_cct.models.layers.modes import eval_mode


@any_heads.each_head
def test_it_is_what_mmseg_predicts_with_whatever_the_mode_of_the_backbone(name):
    model, plain = any_heads.build(name, 'CCTSegmentor'), any_heads.build(name).eval()
    images = torch.randn(2, 3, *any_heads.SIZE)
    with torch.no_grad():
        training = model.train().extract_feat(images)
        with eval_mode(model.decode_head.modules()):
            actual = model.main_logits(training)
        assert actual.shape[:2] == (2, any_heads.C)
        # the head's own prediction, from features as it gets them at inference
        fused = name in ('DDRHead', 'PIDHead')
        metas = [dict(img_shape=actual.shape[-2:])] * 2
        expected = plain.decode_head
        features = training[1] if fused else training
        if isinstance(expected, nn.ModuleList):
            first = expected[0].forward(features)
            expected = expected[1].predict(features, first, metas, plain.test_cfg)
        else:
            expected = expected.predict(features, metas, plain.test_cfg)
    torch.testing.assert_close(actual, expected)
    assert model.decode_head.training


@any_heads.each_head
def test_the_fused_features_are_the_input_of_a_layer(name):
    model = any_heads.build(name, 'CCTSegmentor')
    assert fused_layer(model.decode_head) == any_heads.HEADS[name][2]
    model.decode_head.get_submodule(fused_layer(model.decode_head))


class Masks(MaskFormerHead):
    """Masks and classes as they are given."""

    def __init__(self, scores, masks):
        nn.Module.__init__(self)
        self.parts = [scores], [masks]

    def forward(self, features, samples):
        return self.parts


def test_classified_masks_are_summed_and_normalised():
    torch.manual_seed(0)
    n, q, c, h, w = 2, 4, 3, 5, 6
    scores, masks = torch.randn(n, q, c + 1), 20 * torch.randn(n, q, h, w)
    actual = main_logits(Masks(scores, masks), [torch.zeros(n, 1, h, w)]).softmax(1)
    for i in range(n):
        for y in range(h):
            for x in range(w):
                sums = torch.zeros(c)
                for query in range(q):
                    sums += scores[i, query].softmax(0)[:c] * masks[i, query, y, x].sigmoid()
                torch.testing.assert_close(actual[i, :, y, x], sums / sums.sum())


def test_masks_that_are_nowhere_give_finite_logits():
    masks = torch.full((1, 2, 2, 2), -200.0, requires_grad=True)
    logits = main_logits(Masks(torch.zeros(1, 2, 4), masks), [torch.zeros(1, 1, 2, 2)])
    logits.square().sum().backward()
    assert logits.isfinite().all() and masks.grad.isfinite().all()


class Stages(nn.Module):
    """Predicts once a stage, as K-Net."""

    def forward(self, features):
        return [features[0], features[1]]


def test_of_heads_in_stages_the_last_counts():
    first, last = torch.randn(2, 1, 3, 2, 2)
    assert main_logits(Stages(), (first, last)) is last


@pytest.mark.parametrize(
    'name', ['OCRHead', pytest.param('PointHead', marks=any_heads.needs_operators)]
)
def test_a_cascade_predicts_by_its_last_head_as_mmseg_does(name):
    model, plain = any_heads.build(name, 'CCTSegmentor').eval(), any_heads.build(name).eval()
    model.load_state_dict(plain.state_dict())
    images, metas = torch.randn(2, 3, *any_heads.SIZE), [dict(img_shape=any_heads.SIZE)] * 2
    with torch.no_grad():
        assert torch.equal(model.encode_decode(images, metas), plain.encode_decode(images, metas))
    last = model.decode_head[-1]
    assert (model.num_classes, model.decode_head.ignore_index) == (any_heads.C, last.ignore_index)
