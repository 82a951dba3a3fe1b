import copy

import pytest
import tiny
import torch
from mmengine.optim import OptimWrapper
from mmseg.registry import MODELS

N = 2
SIZES = dict(first=(32, 32), second=(24, 40))
CLASSES = dict(first=3, second=5)
DISCRIMINATOR = dict(type='DomainDiscriminator', in_channels=6, channels=(8, 8))


def make_model(**kwargs):
    torch.manual_seed(0)
    return MODELS.build(tiny.multi_domain_config(**kwargs))


def make_sample(domain):
    return make_batch(domain)['data_samples']['unlabeled'][0]


def make_batch(domain, seed=1):
    """As the data loader gives it."""
    options = dict(num_classes=CLASSES[domain], img_path='x.png', domain=domain)
    return tiny.raw_batch(num_images=N, size=SIZES[domain], seed=seed, **options)


def plain_batch(domain, seed=1):
    return {key: value['labeled'] for key, value in make_batch(domain, seed).items()}


def losses_of(model, batch, seed=2):
    data = model.data_preprocessor(copy.deepcopy(batch), training=True)
    torch.manual_seed(seed)
    return model(**data, mode='loss')


def single_domain_twin(model, domain):
    """A `CCTSegmentor` with the encoder and one domain's decoders."""
    config = tiny.model_config()
    for key, settings in tiny.multi_domain_config()['domains'][domain].items():
        config[key].update(settings)
    twin = MODELS.build(config)
    prefix = f'domains.{domain}.'
    state = {
        name.removeprefix(prefix): value
        for name, value in model.state_dict().items()
        if not name.startswith('domains.') or name.startswith(prefix)
    }
    twin.load_state_dict(state)
    return twin


@pytest.mark.parametrize('domain', SIZES)
def test_each_domain_has_its_teacher_on_the_averaged_encoder(domain):
    model = make_model()
    teacher = tiny.with_teacher(model)
    images = torch.randn(N, 3, *SIZES[domain])
    samples = [make_sample(domain) for _ in range(N)]
    segmentor = model.domains[domain]
    target = segmentor.predict_target(images, model.extract_feat(images))
    torch.testing.assert_close(target, teacher._forward(images, samples))
    assert list(model.state_dict()) == list(teacher.state_dict())


@pytest.mark.parametrize('domain', SIZES)
def test_losses_and_gradients_are_those_of_cct_on_the_domain_alone(domain):
    model = make_model()
    twin = single_domain_twin(model, domain)
    batch = make_batch(domain)
    actual, expected = losses_of(model, batch), losses_of(twin, batch)
    assert actual.keys() == {f'{domain}.{key}' for key in expected}
    for key in expected:
        assert torch.equal(actual[f'{domain}.{key}'], expected[key])
    for trained, losses in ((model, actual), (twin, expected)):
        trained.parse_losses(losses)[0].backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    prefix = f'domains.{domain}.'
    assert {name.removeprefix(prefix) for name in gradients} == dict(twin.named_parameters()).keys()
    for name, gradient in gradients.items():
        assert torch.equal(gradient, twin.get_parameter(name.removeprefix(prefix)).grad)


@pytest.mark.parametrize('setting', ['cct', 'adversarial', 'baseline'])
def test_the_other_domain_does_not_move(setting):
    # After an iteration of each, so that momentum would carry the other one on.
    kwargs = dict(
        cct={}, adversarial=dict(discriminator=DISCRIMINATOR), baseline=dict(auxiliary_head=None)
    )[setting]
    model = make_model(**kwargs)
    make = plain_batch if setting == 'baseline' else make_batch
    wrapper = OptimWrapper(torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.1))
    for domain in SIZES:
        model.train_step(make(domain), wrapper)
    for domain in ('first', 'first', 'second'):
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        states = {n: copy.deepcopy(wrapper.optimizer.state[p]) for n, p in model.named_parameters()}
        model.train_step(make(domain, seed=7), wrapper)
        for name, parameter in model.named_parameters():
            stays = name.startswith('domains.') and not name.startswith(f'domains.{domain}.')
            assert torch.equal(parameter, before[name]) == stays, name
            for key, value in wrapper.optimizer.state[parameter].items():
                same = torch.equal(torch.as_tensor(value), torch.as_tensor(states[name][key]))
                assert not stays or same, name


def test_a_copy_encodes_with_its_own_encoder():
    model = make_model().eval()
    twin = copy.deepcopy(model)
    for parameter in model.backbone.parameters():
        parameter.data.zero_()
    batch = [make_sample('first')]
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert not torch.equal(
            *(network(images, batch, mode='tensor') for network in (model, twin))
        )


def test_the_adversarial_loss_sees_the_domain_and_both_branches():
    model = make_model(discriminator=DISCRIMINATOR).eval()  # the same features at each encoding
    assert model.discriminator.layers[-1].out_channels == 2
    encoded = []
    model.backbone.register_forward_pre_hook(lambda *call: encoded.append(call))
    for number, domain in enumerate(SIZES):
        data = model.data_preprocessor(make_batch(domain), training=True)
        z = [model.extract_feat(images) for images in data['inputs'].values()]
        expected = model.discriminator.loss(z, number)
        data['inputs']['unlabeled_strong_0'] = data['inputs']['unlabeled']  # not for this model
        encoded.clear()
        losses = model.loss(**data)
        assert len(encoded) == 2
        named = {key.removeprefix(f'{domain}.'): value for key, value in losses.items()}
        torch.testing.assert_close(named['adversarial.loss'], expected['loss'])
        torch.testing.assert_close(named['adversarial.accuracy'], expected['accuracy'])
        total, _ = model.parse_losses(losses)
        torch.testing.assert_close(
            total, named['decode.loss_ce'] + named['aux.loss'] + named['adversarial.loss']
        )


@pytest.mark.parametrize('domain', SIZES)
def test_prediction_takes_the_domains_decoder_classes_and_normalisation(domain):
    model = make_model().eval()
    twin = single_domain_twin(model, domain).eval()
    images, samples = torch.randn(1, 3, *SIZES[domain]), [make_sample(domain)]
    with torch.no_grad():
        expected = twin(images)
        torch.testing.assert_close(model.encode_decode(images, samples), expected)
        torch.testing.assert_close(model(images, samples, mode='tensor'), expected)
    batch = plain_batch(domain)
    actual = model.test_step(copy.deepcopy(batch))
    for a, e in zip(actual, twin.test_step(copy.deepcopy(batch))):
        assert a.seg_logits.data.shape == (CLASSES[domain], *SIZES[domain])
        assert torch.equal(a.seg_logits.data, e.seg_logits.data)
        assert torch.equal(a.pred_sem_seg.data, e.pred_sem_seg.data)
