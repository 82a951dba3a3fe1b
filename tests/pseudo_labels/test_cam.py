import pytest
import torch
import torch.nn.functional as F

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels.cam import class_activation_maps, load_classifier, normalize


@pytest.fixture
def model(weak):
    return load_classifier(weak.load(), weak.checkpoint, 'cpu')


def _naive_maps(model, image, ids, size, scales):
    """One class, scale and flip at a time; the linear layer applied to every feature."""
    maps = []
    for index in ids:
        total = 0
        for scale in scales:
            small = (round(24 * scale), round(32 * scale))
            small = F.interpolate(image[None], small, mode='bilinear')
            for flip in (False, True):
                features = model.backbone(small.flip(-1) if flip else small)[-1][0]
                scores = torch.einsum('d,dhw->hw', model.head.fc.weight[index], features)
                scores = scores.clamp_min(0).flip(-1) if flip else scores.clamp_min(0)
                total = total + F.interpolate(scores[None, None], size, mode='bilinear')[0, 0]
        maps.append(total / total.max())
    return torch.stack(maps)


def test_maps_agree_with_a_naive_rewriting(model):
    torch.manual_seed(1)
    images = torch.randn(2, 3, 24, 32)[[0, 1, 0]]
    scales, ids, sizes = (0.5, 1.0, 1.5), [[1], [0, 1], []], [(24, 32), (30, 40), (24, 32)]
    made = class_activation_maps(model, images, ids, sizes, scales)
    assert made.pop().shape == (0, 24, 32)
    for image, maps, class_ids, size in zip(images, made, ids, sizes):
        with torch.no_grad():
            expected = _naive_maps(model, image, class_ids, size, scales)
        assert maps.shape == (len(class_ids), *size)
        assert torch.allclose(maps, expected, atol=1e-5)


def test_a_class_without_activation_stays_zero():
    maps = torch.zeros(2, 3, 3)
    maps[1, 0, 0] = 5.0
    assert normalize(maps).tolist() == [[[0.0] * 3] * 3, [[1.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3]]


@pytest.mark.parametrize(
    ('head', 'error', 'message'),
    [
        (dict(type='MultiLabelClsHead', _delete_=True), UserError, r'model\.head has no linear'),
        (dict(num_classes=5), RuntimeError, r'head\.fc'),
    ],
)
def test_another_model_is_refused(weak, head, error, message):
    config = weak.load()
    config.merge_from_dict(dict(model=dict(head=head)))
    with pytest.raises(error, match=message):
        load_classifier(config, weak.checkpoint, 'cpu')
