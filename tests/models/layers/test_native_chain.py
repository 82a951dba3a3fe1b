import itertools
import shutil

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mmseg_cct.models.layers import native_chain as module
from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.native_chain import native_chain
from mmseg_cct.models.layers.stacked_decoders import Chain, decode
from mmseg_cct.models.perturbations.intermediate_vat import FisherProduct

K = 3
AUTO = Chunking(compile='auto')
needs_compiler = pytest.mark.skipif(
    not (shutil.which('g++') or shutil.which('clang++')), reason='no C++ compiler'
)
# levels, channels, classes, final activation; the last ones are of other tests too
shapes = pytest.mark.parametrize(
    ('levels', 'channels', 'classes', 'final_activation'),
    [(1, 2, 2, False), (2, 7, 5, False), (2, 13, 13, True), (3, 21, 21, False)],
)


def make_chain(levels, channels, classes, final_activation):
    torch.manual_seed(0)
    widths = [channels] * levels + [classes]
    weights = [torch.randn(K, 4 * o, i) * (2 / i) ** 0.5 for i, o in itertools.pairwise(widths)]
    biases = [0.1 * torch.randn(K, 4 * o, 1) for o in widths[1:]]
    return Chain(weights, biases, final_activation)


def differentiable(chain):
    return Chain(
        [w.clone().requires_grad_() for w in chain.weights],
        [b.clone().requires_grad_() for b in chain.biases],
        chain.final_activation,
    )


def assert_close(actual, expected):
    """Within 1e-5 of the largest value."""
    assert (actual - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@needs_compiler
@shapes
@pytest.mark.parametrize('terms', ['squared', 'entropy', 'both'])
def test_losses_and_gradients_are_those_of_autograd(
    levels, channels, classes, final_activation, terms, threads
):
    chain = make_chain(levels, channels, classes, final_activation)
    size, pixels = 96, 4**levels
    features = torch.randn(K, channels, size)
    seg_logits = 3 * torch.randn(classes, pixels, size)
    weights = torch.rand(2, pixels, size)
    labels = torch.randint(0, classes, (pixels, size))
    factors = (0.7, 1.3)
    squared, entropy = terms != 'entropy', terms != 'squared'

    leaf, parameters = features.clone().requires_grad_(), differentiable(chain)
    predicted = decode(leaf, parameters).flatten(2).unflatten(2, (pixels, size))
    q, p = predicted.softmax(1), seg_logits.softmax(0)
    mse = ((q - p).square().mean(1) * weights[0]).sum((1, 2))
    picked = q.log().gather(1, labels.expand(K, 1, -1, -1)).squeeze(1)
    expected = torch.stack([mse * squared, -(picked * weights[1]).sum((1, 2)) * entropy])
    (expected * torch.tensor(factors)[:, None]).sum().backward()

    kernel = native_chain(features, chain, AUTO)
    assert kernel is not None and size % kernel.tile == 0
    maps = [weights[0] if squared else None, *((weights[1], labels.float()) if entropy else ())]
    maps += [None] * (3 - len(maps))
    before = features.clone()
    (grad, *grads), values, agreeing = kernel.losses(features, chain, seg_logits, maps, factors)

    assert torch.equal(features, before)
    assert_close(values, expected.detach())
    assert_close(grad, leaf.grad)
    for actual, of in zip((*grads[0], *grads[1]), (*parameters.weights, *parameters.biases)):
        assert_close(actual, of.grad)
    votes = (predicted.argmax(1) == seg_logits.argmax(0)).float().sum(0)
    if not final_activation:  # whose zeros are ties
        assert torch.equal(agreeing, votes)
        assert torch.equal(kernel.agreeing(features, chain, seg_logits), votes)


@needs_compiler
@shapes
@pytest.mark.parametrize('size', [1, 50, 96])
def test_fisher_product_is_the_eager_one(
    levels, channels, classes, final_activation, size, threads
):
    chain = make_chain(levels, channels, classes, final_activation)
    features, tangent = torch.randn(2, K, channels, size)
    before = tangent.clone()
    kernel = native_chain(features, chain, AUTO)
    actual = kernel.fisher_product(features, tangent, chain)
    product = FisherProduct(final_activation)
    expected = product(features, tangent, chain.weights, chain.biases)
    assert_close(actual, expected)
    assert torch.equal(tangent, before)


@shapes
def test_flops_are_those_of_the_products(levels, channels, classes, final_activation):
    chain = make_chain(levels, channels, classes, final_activation)
    with FlopCounterMode(display=False) as counter:
        decode(torch.randn(K, channels, 10), chain)
    assert chain.flops(10) == counter.get_total_flops()


@needs_compiler
def test_the_same_number_of_threads_gives_the_same_bits(threads):
    chain = make_chain(2, 7, 5, False)
    features, seg_logits = torch.randn(K, 7, 640), torch.randn(5, 16, 640)
    kernel = native_chain(features, chain, AUTO)
    maps = (torch.rand(16, 640), None, None)
    first, second = (kernel.losses(features, chain, seg_logits, maps, (1, 0)) for _ in range(2))
    for one, two in zip(first[0][1] + [first[1]], second[0][1] + [second[1]]):
        assert torch.equal(one, two)


@needs_compiler
def test_positions_without_a_pixel_that_counts_have_no_gradient_and_votes():
    chain = make_chain(2, 7, 5, False)
    features, seg_logits, weights = (torch.randn(*size, 128) for size in ((K, 7), (5, 16), (16,)))
    kernel = native_chain(features, chain, AUTO)
    whole = kernel.losses(features, chain, seg_logits, (weights, None, None), (1, 0))
    weights = torch.cat([torch.zeros(16, 64), weights[:, 64:]], 1)
    (grad, *_), values, agreeing = kernel.losses(
        features, chain, seg_logits, (weights, None, None), (1, 0)
    )
    assert (grad[..., :64] == 0).all()
    assert_close(grad[..., 64:], whole[0][0][..., 64:])
    assert torch.equal(agreeing, whole[2])
    half = kernel.losses(
        *(features[..., 64:].contiguous(), chain, seg_logits[..., 64:].contiguous()),
        (weights[:, 64:].contiguous(), None, None),
        (1, 0),
    )
    assert_close(values[0], half[1][0])


@needs_compiler
def test_extreme_and_missing_predictions():
    chain = make_chain(1, 2, 2, False)
    features, seg_logits = 1e4 * torch.randn(K, 2, 64), 1e4 * torch.randn(2, 4, 64)
    kernel = native_chain(features, chain, AUTO)
    maps = (torch.ones(4, 64), None, None)
    (grad, *_), values, _ = kernel.losses(features, chain, seg_logits, maps, (1, 0))
    assert grad.isfinite().all() and values.isfinite().all() and (values[0] > 0).all()
    features[0, 0, 3] = torch.nan
    _, values, _ = kernel.losses(features, chain, seg_logits, maps, (1, 0))
    assert values[0].isnan().tolist() == [True, False, False]


def swapped(tensor):
    """The same values, in another order in memory."""
    return tensor.mT.contiguous().mT


@pytest.mark.parametrize(
    ('change', 'found'),
    [
        (torch.Tensor.double, 'contiguous torch.float64 on cpu'),
        (torch.Tensor.bfloat16, 'contiguous torch.bfloat16 on cpu'),
        (swapped, 'strided torch.float32 on cpu'),
        (lambda tensor: tensor.to('meta'), 'contiguous torch.float32 on meta'),
    ],
)
def test_only_memory_that_it_can_read_has_a_pointer(change, found):
    tensor = torch.randn(2, 3)
    assert module._pointer(tensor) == tensor.data_ptr() and module._pointer(None) is None
    with pytest.raises(ValueError, match=f'NativeChain: {found}; expected contiguous'):
        module._pointer(change(tensor))
    with pytest.raises(ValueError, match=r'expected contiguous torch\.float64 on the CPU$'):
        module._pointer(tensor, torch.float64)


@needs_compiler
@pytest.mark.parametrize('change', [torch.Tensor.double, swapped])
def test_every_tensor_that_it_would_misread_is_an_error(change):
    chain = make_chain(1, 2, 2, False)
    broken = chain._replace(weights=[change(weight) for weight in chain.weights])
    features, seg_logits, weight = torch.randn(K, 2, 64), torch.randn(2, 4, 64), torch.rand(4, 64)
    kernel = native_chain(features, chain, AUTO)

    def losses(features, chain, seg_logits, weight):
        kernel.losses(features, chain, seg_logits, (weight, None, None), (1, 0))

    for call in (
        lambda: losses(change(features), chain, seg_logits, weight),
        lambda: losses(features, broken, seg_logits, weight),
        lambda: losses(features, chain, change(seg_logits), weight),
        lambda: losses(features, chain, seg_logits, change(weight)),
        lambda: kernel.agreeing(change(features), chain, seg_logits),
        lambda: kernel.agreeing(features, chain, change(seg_logits)),
        lambda: kernel.fisher_product(features, features, broken),
    ):
        with pytest.raises(ValueError, match='NativeChain: '):
            call()


@needs_compiler
def test_16_bit_features_have_a_kernel_that_takes_none():
    chain = make_chain(1, 2, 2, False)
    features, tangent = torch.randn(2, K, 2, 64)
    kernel = native_chain(features.bfloat16(), chain, AUTO)  # losses cast them
    with pytest.raises(ValueError, match=r'contiguous torch\.bfloat16 on cpu'):
        kernel.fisher_product(features.bfloat16(), tangent, chain)


@pytest.mark.parametrize(
    ('compile', 'dtype', 'levels'),
    [(False, torch.float32, 2), (True, torch.float32, 2), ('auto', torch.float64, 2)],
)
def test_other_settings_have_no_kernel(compile, dtype, levels):
    chain = make_chain(levels, 7, 5, False)
    features = torch.randn(K, 7, 64, dtype=dtype)
    assert native_chain(features, chain, Chunking(compile=compile)) is None
    assert native_chain(torch.randn(K, 7, 64), Chain((), (), False), AUTO) is None


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Nothing built yet; the lines that are logged."""
    module._built.cache_clear()
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    logged = []
    monkeypatch.setattr(module, 'print_log', lambda message, **kwargs: logged.append(message))
    yield logged
    module._built.cache_clear()


def ask_twice():
    chain = make_chain(1, 2, 2, False)
    return [native_chain(torch.randn(K, 2, 8), chain, AUTO) for _ in range(2)]


def test_without_a_compiler_there_is_no_kernel_and_one_line(fresh, monkeypatch):
    monkeypatch.setattr(module.shutil, 'which', lambda name: None)
    assert ask_twice() == [None, None]
    assert len(fresh) == 1 and 'no g++ or clang++' in fresh[0] and '\n' not in fresh[0]


@needs_compiler
def test_after_a_failed_build_there_is_no_kernel_and_one_line(fresh, tmp_path, monkeypatch):
    broken = tmp_path / 'broken.cpp'
    broken.write_text('#error not today\n#error nor tomorrow\n')
    monkeypatch.setattr(module, 'SOURCE', broken)
    assert ask_twice() == [None, None]
    assert len(fresh) == 1 and 'not today' in fresh[0] and '\n' not in fresh[0]
    assert list((tmp_path / 'mmseg_cct').iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told(fresh, tmp_path, monkeypatch):
    (tmp_path / 'mmseg_cct').write_text('a file in the way')
    monkeypatch.setattr(module.shutil, 'which', lambda name: 'true')
    assert ask_twice() == [None, None]
    assert len(fresh) == 1 and 'mmseg_cct' in fresh[0]


@needs_compiler
def test_a_library_is_built_once(fresh, tmp_path, monkeypatch):
    first, _ = ask_twice()
    assert [path.suffix for path in (tmp_path / 'mmseg_cct').iterdir()] == ['.so']
    module._built.cache_clear()
    run = module.subprocess.run
    commands = []
    monkeypatch.setattr(
        module.subprocess,
        'run',
        lambda command, **kw: commands.append(command) or run(command, **kw),
    )
    second, _ = ask_twice()  # as another process
    assert first is not None and second is not None
    assert len(fresh) == 2 and all('native kernel' in line for line in fresh)
    assert [command[1:] for command in commands] == [['--version']]
