"""What a model cannot take: each kind of mistake once, by the key that the error names."""

import any_heads
import pytest
import tiny
import torch
from banks import C, H, W, make_bank, make_batch, run_loss, with_masks
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.errors import UserError
from mmseg_cct.models import BootstrappedCrossEntropy, MultiChannelBackbone
from mmseg_cct.models.heads.main_logits import main_logits
from mmseg_cct.models.layers.subpixel import num_levels
from mmseg_cct.models.losses import PixelTargets

BANK = tiny.model_config()['auxiliary_head']
FCN = dict(type='FCNHead', in_channels=6, channels=4, num_convs=1, num_classes=3)
STRONG = dict(type='ConfidentCrossEntropy', loss_weight=2.0, threshold=0.4)
DOMAINS = tiny.multi_domain_config()['domains']
PAIRS, HEADS = 'train_dataloader.dataset', 'model.auxiliary_head'


def build(config, **settings):
    for key, value in settings.items():
        config[key] = value  # `update` would merge it
    return MODELS.build(config)


def step(model, branches=('labeled', 'unlabeled'), **options):
    batch = tiny.raw_batch(branches, **options)
    if branches == ('labeled',):
        batch = {key: value['labeled'] for key, value in batch.items()}
    return model(**model.data_preprocessor(batch, training=True), mode='loss')


def one_channel_for_two_classes():
    config = any_heads.settings('PIDHead', 'CCTSegmentor')
    config.decode_head.update(num_classes=2, out_channels=1, threshold=0.3)
    return MODELS.build(config)


def with_heads(*heads, **settings):
    return build(tiny.model_config(**settings), auxiliary_head=[*heads])


def of_domains(second=None, **settings):
    if second is not None:
        settings['domains'] = dict(DOMAINS, second=dict(DOMAINS['second'], auxiliary_head=second))
    return build(tiny.multi_domain_config(), **settings)


def bank_of(perturbations):
    return build(tiny.model_config(), auxiliary_head=dict(BANK, perturbations=perturbations))


def loss_of_bank(change=lambda *batch: batch, **settings):
    """The loss on z, the main prediction and samples as they are changed."""
    return run_loss(make_bank(**settings), change(*make_batch()))


def of_stride_8(z, seg_logits, samples):
    masks = torch.ones(len(samples), 1, 8 * H, 8 * W, dtype=torch.bool)
    return z, seg_logits, with_masks(samples, masks)


class Branches(nn.Module):
    """A head of an unknown kind, which returns two maps."""

    def forward(self, features):
        return features, features


DROP, PERTURBATIONS = dict(type='FeatureDrop'), f'{HEADS}.perturbations'
STRONG_ONE = dict(type='CCTStrongSegmentor')
FIXMATCH = dict(type='FixMatchSegmentor', loss_strong=STRONG)


@pytest.mark.parametrize(
    ('make', 'key'),
    [
        (
            lambda: MultiChannelBackbone(5, dict(type='ResNet', depth=18, in_channels=4)),
            "model.backbone.backbone.type='ResNet'",
        ),
        (lambda: MODELS.build(dict(type='WeakCrossEntropy')).term(
            PixelTargets(torch.zeros(1, 3, 2, 2), None, 1, stride=1)), f'{HEADS}.loss_weak'),
        (lambda: BootstrappedCrossEntropy()(
            torch.zeros(1, 3, 2, 2), torch.zeros(1, 2, 2).long(), weight=torch.ones(1, 2, 2)),
         'model.decode_head.sampler'),
        (one_channel_for_two_classes, 'model.decode_head.out_channels=1'),
        # auxiliary heads
        (lambda: step(tiny.build(auxiliary_head=None)), HEADS),
        (lambda: with_heads(FCN), HEADS),
        (lambda: with_heads(BANK, BANK), HEADS),
        (lambda: with_heads(BANK, **FIXMATCH), HEADS),
        (lambda: with_heads(FCN, **STRONG_ONE), HEADS),
        (lambda: bank_of(dict(a=dict(DROP, num_decoders=0))), PERTURBATIONS),
        # mmengine would sum all that it logs
        (lambda: bank_of(dict(lossy=DROP)), f'{PERTURBATIONS}.lossy'),
        *((lambda name=name: loss_of_bank(context_classes=(name,)), f'{HEADS}.context_classes')
          for name in ('backgroud', C, -1)),
        (lambda: loss_of_bank(lambda z, seg_logits, _: (z, seg_logits, [SegDataSample()] * 2)),
         f'{HEADS}.context_classes'),  # a name where no names are
        (lambda: loss_of_bank(of_stride_8, stride=4), f'{HEADS}.stride=4'),
        (lambda: loss_of_bank(lambda z, seg_logits, samples: (z, seg_logits[:, 1:], samples)),
         f'{HEADS}.num_classes={C}'),
        *((lambda stride=stride: num_levels(stride), f'stride={stride}') for stride in (6, 0, -2)),
        (lambda: main_logits(Branches(), tiny.context().features), 'model.decode_head'),
        # batches
        (lambda: tiny.build().loss(torch.zeros(1, 3, 32, 32), []), PAIRS),
        (lambda: tiny.mean_teacher().loss(torch.zeros(1, 3, 32, 32), []), PAIRS),
        (lambda: step(tiny.mean_teacher()), 'custom_hooks'),  # no teacher's hook
        (lambda: step(tiny.build(**STRONG_ONE)), f'{PAIRS}.unlabeled.pipeline'),  # no views
        # domains
        (lambda: of_domains(second=dict(num_classes=5), auxiliary_head=[FCN, BANK]),
         'model.domains.second.auxiliary_head'),
        (lambda: of_domains(domains=dict(first=dict(num_classes=3))),
         'model.domains.first.num_classes'),
        (lambda: of_domains(domains=dict(glossy={})), 'model.domains'),
        (lambda: step(of_domains(second=dict(num_classes=7)),
                      size=(24, 40), num_classes=5, domain='second'),
         'model.domains.second.auxiliary_head.num_classes=7'),
        (lambda: step(of_domains(), ('labeled',), domain='first'), f'{PAIRS}.domains'),
    ],
)  # fmt: skip
def test_a_mistake_is_named(make, key):
    with pytest.raises(UserError) as error:
        make()
    assert error.value.problems[0].key == key
