import torch
import torch.nn.functional as F

from mmseg_cct.models.heads.domain_discriminator import DomainDiscriminator

N, D, H, W = 2, 6, 4, 5


def make(**kwargs):
    torch.manual_seed(0)
    return DomainDiscriminator(D, **{'num_domains': 3, 'channels': (8, 4), **kwargs})


def make_features(seed=1, size=(H, W)):
    torch.manual_seed(seed)
    return (torch.zeros(1), torch.randn(N, D, *size, requires_grad=True))


def test_the_encoder_climbs_what_the_discriminator_descends():
    model, features = make(scale=0.5), [make_features()]
    loss = model.loss(features, 1)['loss']
    actual = torch.autograd.grad(loss, [features[0][-1], *model.parameters()])
    plain = F.cross_entropy(model(features[0][-1]), torch.full((N, H, W), 1))
    expected = torch.autograd.grad(plain, [features[0][-1], *model.parameters()])
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(actual[0], -0.5 * expected[0])
    for mine, expected_grad in zip(actual[1:], expected[1:]):
        torch.testing.assert_close(mine, expected_grad)


def test_the_papers_network():
    model = DomainDiscriminator(512)
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if name.endswith('weight')]
    widths = [(64, 512), (128, 64), (256, 128), (512, 256)]
    assert shapes == [*((out, into, 3, 3) for out, into in widths), (2, 512, 1, 1)]
    assert model(torch.randn(1, 512, 5, 7)).shape == (1, 2, 5, 7)
    assert model.scale == 2e-2
    slopes = {m.negative_slope for m in model.modules() if isinstance(m, torch.nn.LeakyReLU)}
    assert slopes == {0.2}


def test_the_loss_is_the_mean_over_the_positions_of_all_branches():
    model, branches = make(), [make_features(1), make_features(2, size=(2, 3))]
    result = model.loss(branches, 2)
    scores = torch.cat([model(z).permute(0, 2, 3, 1).reshape(-1, 3) for _, z in branches])
    assert len(scores) == N * (H * W + 2 * 3)
    expected = -scores.log_softmax(1)[:, 2].mean()
    torch.testing.assert_close(result['loss'], expected)
    optimised = {key for key, value in result.items() if value.requires_grad}
    assert optimised == {'loss'} == {key for key in result if 'loss' in key}
