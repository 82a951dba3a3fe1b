import copy
import itertools

import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData

from mmseg_cct.models.segmentors.strong_views import WeakViews

N, SIZE = 2, (32, 32)
FCN = dict(type='FCNHead', in_channels=6, channels=4, num_convs=1, num_classes=3, dropout_ratio=0)
STRONG = dict(type='ConfidentCrossEntropy', loss_weight=2.0, threshold=0.4)


def make_model(segmentor='CCTPlusSegmentor', **kwargs):
    settings = dict(type=segmentor)
    if segmentor != 'CCTStrongSegmentor':
        settings.update(loss_strong=STRONG)
    if 'Match' in segmentor:
        settings.update(auxiliary_head=None)
    if segmentor == 'UniMatchV2Segmentor':
        settings.update(channel_dropout=dict(type='ComplementaryDropout'))
    return tiny.build(**copy.deepcopy(dict(settings, **kwargs)))


def make_batch(num_views=1, size=SIZE):
    """As the data loader gives it; images smaller than 32×32 are padded."""
    views = [f'unlabeled_strong_{i}' for i in range(num_views)]
    return tiny.raw_batch(['labeled', 'unlabeled', *views], N, size)


def prepared(model, *args, **kwargs):
    return model.data_preprocessor(make_batch(*args, **kwargs), training=True)


def losses_of(model, data, seed=2):
    torch.manual_seed(seed)
    return model(**copy.deepcopy(data), mode='loss')


def gradients_of(model, loss):
    model.zero_grad()
    loss.backward(retain_graph=True)
    return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}


def test_a_map_and_its_class_token_are_split_by_view():
    model, views = make_model('FixMatchSegmentor'), [torch.zeros(N, 1), torch.ones(N, 1)]
    model.extract_feat = lambda images: (images, [images + 1, images + 2])
    for number, (z, (patches, token)) in enumerate(model.encode_strong(views)):
        for shift, part in enumerate((z, patches, token)):
            assert torch.equal(part, torch.full((N, 1), float(number + shift)))


class FixedBoxes(torch.nn.Module):
    """Mixes the first view's images in a box that reaches padding, the next's in the lower half."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def forward(self, images):
        boxes = torch.zeros(len(images), 1, *images.shape[-2:], dtype=torch.bool)
        if self.drawn:
            boxes[:, :, 16:] = True
        else:
            boxes[:, :, :16, 8:] = True
        self.drawn.append(boxes)
        return boxes


class WithoutEvenChannels(torch.nn.Module):
    """A dropout without chance."""

    def forward(self, z):
        kept = z.clone()
        kept[:, ::2] = 0
        return kept


def predict(model, images):
    """Logits at the size of the images, resized as the head does."""
    seg_logits = model.decode_head.forward(model.extract_feat(images))
    corners = model.decode_head.align_corners
    return F.interpolate(seg_logits, images.shape[-2:], mode='bilinear', align_corners=corners)


def own_and_pasted(data, teacher):
    """Logits and validity of the weak views, and of the images pasted into them."""
    with torch.no_grad():
        seg_logits = predict(teacher, data['inputs']['unlabeled'])
    valid = torch.stack([s.valid_mask.data for s in data['data_samples']['unlabeled']])
    return (seg_logits, valid), (seg_logits.flip(0), valid.flip(0))


@pytest.mark.parametrize(
    ('head', 'threshold', 'num_views', 'mixed'),
    [({}, 0.4, 1, True), (FCN, 0.999, 2, False), (dict(FCN, align_corners=True), 0.999, 2, True)],
)
def test_the_strong_loss_is_the_cross_entropy_on_mixed_views(head, threshold, num_views, mixed):
    model = make_model(decode_head=head, loss_strong=dict(STRONG, threshold=threshold))
    teacher = tiny.with_teacher(model)
    data = prepared(model, num_views, size=(32, 24))  # the right quarter is padding
    student = copy.deepcopy(model)
    if mixed:
        model.cutmix = FixedBoxes()
    losses = losses_of(model, data)

    pairs = []
    for seg_logits, valid in own_and_pasted(data, teacher):
        confidence, labels = seg_logits.softmax(1).max(1, keepdim=True)
        pairs.append((labels, valid * (confidence >= threshold).float(), valid))
    nothing = [torch.zeros(N, 1, *SIZE, dtype=torch.bool)] * 2
    boxes = model.cutmix.drawn if mixed else nothing
    views, inputs = [], data['inputs']
    for i, box in zip(range(num_views), boxes):
        view = inputs[f'unlabeled_strong_{i}']
        views.append(torch.where(box, view.flip(0), view))
    # labelled images first, then the weak and all strong views: the order of the encoder's passes
    student.extract_feat(inputs['labeled'])
    expected = 0
    for unmixed, box in zip(predict(student, torch.cat(views)).split(N), boxes):
        labels, weight, valid = (torch.where(box, its, mine) for mine, its in zip(*pairs))
        entropy = F.cross_entropy(unmixed, labels.squeeze(1), reduction='none').unsqueeze(1)
        expected += (entropy * weight).sum() / valid.sum() / num_views
    torch.testing.assert_close(losses['strong.loss'], 2 * expected)
    torch.testing.assert_close(losses['strong.unweighted'], expected.detach())
    (_, weight, valid), _ = pairs
    torch.testing.assert_close(losses['strong.pixels'], weight.sum() / valid.sum())
    assert 0 < losses['strong.pixels'] < 1


def test_the_feature_stream_is_the_weak_view_without_some_channels():
    strong = dict(STRONG, threshold=0)
    model = make_model('UniMatchSegmentor', feature_weight=3.0, loss_strong=strong)
    tiny.with_teacher(model)
    model.feature_dropout = WithoutEvenChannels()
    data = prepared(model)
    student = copy.deepcopy(model)
    losses = losses_of(model, data)
    with torch.no_grad():
        labels = model._teacher[0](data['inputs']['unlabeled'], mode='tensor').argmax(1)
    student.extract_feat(data['inputs']['labeled'])
    z = student.extract_feat(data['inputs']['unlabeled'])
    expected = F.cross_entropy(student.decode_head.forward((WithoutEvenChannels()(z[-1]),)), labels)
    torch.testing.assert_close(losses['feature.loss'], 3 * expected)


def test_the_losses_on_labels_are_weighted_by_themselves():
    """Those of the main decoder and of MMSeg's auxiliary heads."""
    models = [
        make_model('UniMatchSegmentor', auxiliary_head=[FCN], supervised_weight=w)
        for w in (1.0, 0.5)
    ]
    whole, half = (losses_of(model, prepared(model)) for model in models)
    for name in whole:
        on_labels = name in ('decode.loss_ce', 'aux_0.loss_ce')
        assert torch.equal(half[name], whole[name] / 2 if on_labels else whole[name]), name


@pytest.mark.parametrize('segmentor', ['CCTPlusSegmentor', 'CCTStrongSegmentor'])
def test_the_auxiliary_losses_never_train_the_main_decoder(segmentor):
    model = make_model(segmentor, cutmix=dict(type='CutMix', prob=1.0))
    losses = losses_of(model, prepared(model))
    trained = gradients_of(model, losses['aux.loss'])
    assert {name.split('.')[0] for name in trained} == {'backbone', 'neck', 'auxiliary_head'}
    if 'strong.loss' in losses:
        trained = gradients_of(model, losses['strong.loss'])
        assert {name.split('.')[0] for name in trained} == {'backbone', 'neck', 'decode_head'}


def test_a_bank_on_the_strong_view_sees_mixed_targets_validity_and_pseudo_labels():
    bank = dict(tiny.model_config()['auxiliary_head'], loss_weak=dict(type='WeakCrossEntropy'))
    model = make_model('CCTStrongSegmentor', auxiliary_head=bank)
    model.cutmix = FixedBoxes()
    teacher = tiny.with_teacher(model)
    data = prepared(model)
    weak = data['data_samples']['unlabeled']
    weak[0].valid_mask.data[..., 24:] = False
    labels = torch.randint(0, 3, (N, 1, *SIZE))
    for sample, label in zip(weak, labels):
        sample.pseudo_sem_seg = PixelData(data=label)
    seen = tiny.calls(model.auxiliary_head, 'loss')
    losses = losses_of(model, data)
    ((_, target, samples, _),) = seen
    (box,) = model.cutmix.drawn
    unmixed, pasted = own_and_pasted(data, teacher)
    torch.testing.assert_close(target, torch.where(box, pasted[0], unmixed[0]))
    valid = torch.stack([sample.valid_mask.data for sample in samples])
    mixed = torch.where(box, pasted[1], unmixed[1])
    assert torch.equal(valid, mixed) and not torch.equal(valid, unmixed[1])
    actual = torch.stack([sample.pseudo_sem_seg.data for sample in samples])
    assert torch.equal(actual, torch.where(box, labels.flip(0), labels))
    assert losses['aux.weak_ce'] > 0


# number of views, whether there is a teacher
METHODS = dict(
    FixMatchSegmentor=(1, False),
    UniMatchSegmentor=(2, False),
    UniMatchV2Segmentor=(2, True),
    CCTPlusSegmentor=(1, True),
    CCTStrongSegmentor=(1, True),
)


@pytest.mark.parametrize('segmentor', METHODS)
def test_a_step_trains_every_weight_by_the_keys_with_loss_alone(segmentor):
    """So DDP need not look for unused parameters."""
    num_views, taught = METHODS[segmentor]
    model = make_model(segmentor, cutmix=dict(type='CutMix'))
    if taught:
        tiny.with_teacher(model)
    seen = tiny.calls(model.decode_head, 'forward')
    losses = losses_of(model, prepared(model, num_views))
    for key, value in losses.items():
        if isinstance(value, torch.Tensor):
            assert ('loss' in key) == value.requires_grad, key
    model.parse_losses(losses)[0].backward()
    assert [name for name, item in model.named_parameters() if item.grad is None] == []
    if segmentor == 'CCTStrongSegmentor':
        assert len(seen) == 1  # the labelled images


def test_channel_dropout_takes_each_channel_from_one_view():
    model = make_model('UniMatchV2Segmentor')
    model.channel_dropout.keep_ratio = 0.0
    seen = tiny.calls(model.decode_head, 'forward')
    losses_of(model, prepared(model, num_views=2))
    first, second = (features[-1] for (features,) in seen[-2:])
    assert ((first == 0) | (second == 0)).flatten(2).all(2).all()
    assert first.any() and second.any()


@pytest.mark.parametrize('taught', [False, True])
@pytest.mark.parametrize(
    ('segmentor', 'learns'),
    [
        ('CCTPlusSegmentor', True),
        ('CCTStrongSegmentor', False),
        ('FixMatchSegmentor', False),
        ('UniMatchSegmentor', True),
    ],
)
def test_the_weak_view_has_a_graph_only_where_the_student_learns_from_it(segmentor, learns, taught):
    model = make_model(segmentor)
    if taught:
        tiny.with_teacher(model)
    data, extract, passes = prepared(model), model.extract_feat, []
    model.extract_feat = lambda images: passes.append(extract(images)) or passes[-1]
    losses_of(model, data)
    expected = [True, learns, True]  # labelled, weak, strong
    if taught and not learns:  # the student need not see it
        del expected[1]
    assert [features[0].requires_grad for features in passes] == expected


def test_the_total_of_unimatch_is_that_of_its_code(monkeypatch):
    """On given logits: L = (L_s + ¼ s₁ + ¼ s₂ + ½ f) / 2, each by a loop over pixels in float64."""
    torch.manual_seed(0)
    weak, first, second, feature = (torch.randn(N, 3, 8, 8) for _ in range(4))
    boxes = [torch.rand(N, 1, 8, 8) < 0.3 for _ in range(2)]
    real, tau, labeled = torch.rand(N, 1, 8, 8) < 0.9, 0.6, torch.tensor(0.7)
    loss_strong = dict(STRONG, threshold=tau, loss_weight=0.25)
    model = make_model('UniMatchSegmentor', loss_strong=loss_strong)
    model.feature_dropout = torch.nn.Identity()
    for name, value in dict(
        extract_feat=(),
        supervised_loss={'decode.loss_ce': labeled},
        predict_weak=WeakViews([feature], weak, real, []),
        mix_strong=([], boxes),
        encode_strong=[[first], [second]],
    ).items():
        monkeypatch.setattr(model, name, lambda *args, value=value, **kwargs: value)
    monkeypatch.setattr(model, 'main_logits', lambda maps: maps[-1])
    inputs = dict.fromkeys(('labeled', 'unlabeled'))
    losses = model.loss(inputs, dict.fromkeys(inputs, ()))

    def naive(logits, box):
        total = pixels = 0.0
        for i, y, x in itertools.product(range(N), range(8), range(8)):
            source = N - 1 - i if box[i, 0, y, x] else i
            if not real[source, 0, y, x]:
                continue
            p, pixels = weak[source, :, y, x].double().softmax(0), pixels + 1
            if p.max() >= tau:
                total -= logits[i, :, y, x].double().log_softmax(0)[p.argmax()]
        return total / pixels

    unmixed = torch.zeros_like(boxes[0])
    views = naive(first, boxes[0]) / 4 + naive(second, boxes[1]) / 4
    expected = (labeled.double() + views + naive(feature, unmixed) / 2) / 2
    total = sum(value.double() for name, value in losses.items() if 'loss' in name)
    assert total.item() == pytest.approx(expected.item(), abs=1e-7)
