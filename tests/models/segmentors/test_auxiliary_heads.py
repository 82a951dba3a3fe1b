import copy

import pytest
import tiny
import torch
from mmengine.runner.checkpoint import load_state_dict
from mmseg.registry import MODELS

BANK = tiny.model_config()['auxiliary_head']


def fcn(channels=4):
    """An auxiliary head of MMSeg on what the tiny model's neck gives."""
    return dict(
        type='FCNHead', in_channels=6, channels=channels, num_convs=1, num_classes=3,
        norm_cfg=dict(type='BN'),
    )  # fmt: skip


def make_model(auxiliary_head, segmentor='CCTSegmentor', **kwargs):
    torch.manual_seed(0)
    config = tiny.model_config(type=segmentor, **kwargs)
    config['auxiliary_head'] = copy.deepcopy(auxiliary_head)  # `update` would merge it
    return MODELS.build(config)


def make_batch(model, branches=('labeled', 'unlabeled')):
    return model.data_preprocessor(tiny.raw_batch(branches), training=True)


@pytest.mark.parametrize(
    'heads', [fcn(), [fcn()], [fcn(), fcn(channels=5)]], ids=['one', 'a list of one', 'two']
)
def test_weights_of_an_encoder_decoder_load_into_the_same_heads(heads):
    """As MMSeg's checkpoints name them: one head by itself, those of a list by number."""
    state_dict = make_model(heads, 'EncoderDecoder').state_dict()
    listed = isinstance(heads, list)
    model = make_model([*heads, BANK] if listed else [heads, BANK])
    bank_state = copy.deepcopy(model.auxiliary_head.state_dict())
    with torch.no_grad():
        for parameter in model.supervised_heads.parameters():
            parameter.fill_(7)
    load_state_dict(model, state_dict, strict=False)
    for index, head in enumerate(model.supervised_heads):
        number = f'{index}.' if listed else ''
        for name, value in head.state_dict().items():
            assert torch.equal(value, state_dict[f'auxiliary_head.{number}{name}']), name
    for name, value in model.auxiliary_head.state_dict().items():
        assert torch.equal(value, bank_state[name]), name


@pytest.mark.parametrize('segmentor', ['MeanTeacherSegmentor', 'InputVATSegmentor'])
def test_consistency_on_images_trains_mmsegs_heads(segmentor):
    model = make_model(fcn(), segmentor, loss_consistency=dict(type='MSEConsistency'))
    if segmentor == 'MeanTeacherSegmentor':
        model.set_teacher(copy.deepcopy(model).eval())
    losses = model(**make_batch(model), mode='loss')
    assert any(name.startswith('aux') and name.endswith('loss_ce') for name in losses)
    model.parse_losses(losses)[0].backward()
    assert [name for name, item in model.named_parameters() if item.grad is None] == []


def multi_domain(auxiliary_head, second):
    config = tiny.multi_domain_config()
    config['auxiliary_head'] = auxiliary_head
    config['domains']['second']['auxiliary_head'] = second
    torch.manual_seed(0)
    return MODELS.build(config)


def losses_of_domain(model, domain):
    size, num_classes = dict(first=((32, 32), 3), second=((24, 40), 5))[domain]
    batch = tiny.raw_batch(size=size, num_classes=num_classes, domain=domain)
    return model(**model.data_preprocessor(batch, training=True), mode='loss')


def test_each_domain_has_its_own_list_of_heads():
    model = multi_domain(
        [fcn(), dict(BANK)], [dict(num_classes=5), dict(num_classes=5, context_classes=(1,))]
    )
    for name, domain in model.domains.items():
        assert domain.auxiliary_head.num_classes == domain.supervised_heads[0].num_classes
        losses = losses_of_domain(model, name)
        assert {f'{name}.aux_0.loss_ce', f'{name}.aux.loss'} < losses.keys()
        model.parse_losses(losses)[0].backward()
        assert [n for n, item in domain.named_parameters() if item.grad is None] == []
