import itertools
import os
import re
import shutil
from types import SimpleNamespace

import pytest
import torch
from banks import assert_close_relative as assert_close
from banks import needs_compiler

from mmseg_cct.models.layers import native_chain as module
from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.native_chain import native_chain
from mmseg_cct.models.layers.stacked_decoders import Chain, decode
from mmseg_cct.models.perturbations.intermediate_vat import FisherProduct

K = 3
AUTO = Chunking(compile='auto')
# levels, channels, classes, final activation; as in other tests, so that each is built once
SHAPES = [(1, 2, 2, False), (2, 7, 5, True), (3, 5, 5, False)]


def make_chain(levels, channels, classes, final_activation=False):
    torch.manual_seed(0)
    widths = [channels] * levels + [classes]
    weights = [torch.randn(K, 4 * o, i) * (2 / i) ** 0.5 for i, o in itertools.pairwise(widths)]
    biases = [0.1 * torch.randn(K, 4 * o, 1) for o in widths[1:]]
    return Chain(weights, biases, final_activation)


def run(chain, features, seg_logits, maps, factors=(0.7, 1.3)):
    kernel = native_chain(features, chain, AUTO)
    assert kernel is not None and features.shape[-1] % kernel.tile == 0
    return kernel.losses(features, chain, seg_logits, maps, factors)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@needs_compiler
@pytest.mark.parametrize(
    ('shape', 'terms'),
    [(SHAPES[0], 'squared'), (SHAPES[0], 'entropy'), *((shape, 'both') for shape in SHAPES)],
)
def test_losses_and_gradients_are_those_of_autograd(shape, terms, two_threads):
    levels, channels, classes, final_activation = shape
    chain = make_chain(*shape)
    size, pixels = 160, 4**levels
    features = torch.randn(K, channels, size)
    seg_logits = 3 * torch.randn(classes, pixels, size)
    weights = torch.rand(2, pixels, size)
    weights[..., :64] = 0  # where no pixel of a position counts it is skipped
    labels = torch.randint(0, classes, (pixels, size))
    squared, entropy = terms != 'entropy', terms != 'squared'

    leaf = features.clone().requires_grad_()
    parameters = [[t.clone().requires_grad_() for t in of_chain] for of_chain in chain[:2]]
    predicted = decode(leaf, Chain(*parameters, final_activation))
    predicted = predicted.flatten(2).unflatten(2, (pixels, size))
    q, p = predicted.softmax(1), seg_logits.softmax(0)
    mse = ((q - p).square().mean(1) * weights[0]).sum((1, 2))
    picked = q.log().gather(1, labels.expand(K, 1, -1, -1)).squeeze(1)
    expected = torch.stack([mse * squared, -(picked * weights[1]).sum((1, 2)) * entropy])
    (expected * torch.tensor([[0.7], [1.3]])).sum().backward()

    maps = [weights[0] if squared else None]
    maps += [weights[1], labels.float()] if entropy else [None, None]
    before = features.clone()
    (grad, *grads), values, agreeing = run(chain, features, seg_logits, maps)
    assert torch.equal(features, before)
    assert_close(values, expected.detach(), 1e-5)
    assert_close(grad, leaf.grad, 1e-5)
    assert (grad[..., :64] == 0).all()
    for actual, parameter in zip((*grads[0], *grads[1]), (*parameters[0], *parameters[1])):
        assert_close(actual, parameter.grad, 1e-5)
    votes = (predicted.argmax(1) == seg_logits.argmax(0)).float().sum(0)
    if not final_activation:  # whose zeros are ties
        assert torch.equal(agreeing, votes)


@needs_compiler
@pytest.mark.parametrize('shape', SHAPES)
def test_fisher_product_is_the_eager_one(shape, two_threads):
    chain = make_chain(*shape)
    product = FisherProduct(chain.final_activation)
    for size in (1, 50, 96):
        features, tangent = torch.randn(2, K, shape[1], size)
        before = tangent.clone()
        actual = native_chain(features, chain, AUTO).fisher_product(features, tangent, chain)
        assert_close(actual, product(features, tangent, chain.weights, chain.biases), 1e-5)
        assert torch.equal(tangent, before)


@needs_compiler
def test_the_same_number_of_threads_gives_the_same_bits(two_threads):
    chain = make_chain(3, 5, 5)
    features, seg_logits = torch.randn(K, 5, 640), torch.randn(5, 64, 640)
    maps = (torch.rand(64, 640), None, None)
    first, second = (run(chain, features, seg_logits, maps) for _ in range(2))
    for one, two in zip(first[0][1] + [first[1]], second[0][1] + [second[1]]):
        assert torch.equal(one, two)


@needs_compiler
def test_extreme_predictions_stay_finite():
    chain = make_chain(1, 2, 2)
    features, seg_logits = 1e4 * torch.randn(K, 2, 64), 1e4 * torch.randn(2, 4, 64)
    (grad, *_), values, _ = run(chain, features, seg_logits, (torch.ones(4, 64), None, None))
    assert grad.isfinite().all() and values.isfinite().all() and (values[0] > 0).all()


@needs_compiler
@pytest.mark.parametrize('where', ['target', 'features', 'weights', 'biases'])
def test_what_is_not_finite_shows_where_no_pixel_counts(where):
    """As in the eager path: 0 times NaN is NaN."""
    chain = make_chain(1, 2, 2)
    features, seg_logits = torch.randn(K, 2, 64), torch.randn(2, 4, 64)
    maps = (torch.zeros(4, 64), None, None)
    assert (run(chain, features, seg_logits, maps)[1] == 0).all()
    places = dict(
        target=seg_logits,
        features=features[0],
        weights=chain.weights[0][0],
        biases=chain.biases[0][0],
    )
    places[where].view(-1)[-1] = torch.inf if where == 'biases' else torch.nan
    (grad, *_), values, _ = run(chain, features, seg_logits, maps)
    assert values[0].isnan().tolist() == [True, *[where == 'target'] * 2]
    assert grad[0].isnan().any()


def test_other_settings_have_no_kernel():
    features, chain = torch.randn(K, 7, 64), make_chain(2, 7, 5)
    assert native_chain(features, chain, Chunking(compile=False)) is None
    assert native_chain(features.double(), chain, AUTO) is None
    assert native_chain(features, Chain((), (), False), AUTO) is None


def ask():
    return native_chain(torch.randn(K, 2, 8), make_chain(1, 2, 2), AUTO)


@pytest.fixture
def fresh(tmp_path, monkeypatch, messages):
    """Nothing built yet; the lines that are logged."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    module._built.cache_clear()
    yield messages
    module._built.cache_clear()


@pytest.fixture
def builds(monkeypatch, request):
    """A compiler that copies; its calls so far."""
    library, calls = ask()._library._name, []
    request.getfixturevalue('fresh')

    def run(command):
        if '-o' in command:
            calls.append(command)
            shutil.copy(library, command[-1])
        return SimpleNamespace(stdout=b'version')

    monkeypatch.setattr(module, '_run', run)
    return calls


@needs_compiler
def test_a_library_is_built_once(tmp_path, builds, fresh):
    for _ in range(2):  # as two processes
        module._built.cache_clear()
        assert ask() is ask() is not None
    assert len(builds) == 1
    assert len(fresh) == 2 and all('native kernel' in line for line in fresh)
    (library,) = (tmp_path / 'mmseg_cct').iterdir()
    assert library.suffix == '.so'
    assert (tmp_path / 'mmseg_cct').stat().st_mode & 0o777 == 0o700
    # cut off, as by a full disk: loading it would end the process
    content = library.read_bytes()
    library.unlink()  # which this process has loaded
    library.write_bytes(content[: len(content) * 6 // 10])
    module._built.cache_clear()
    assert ask() is not None
    assert len(builds) == 2 and library.read_bytes() == content


@needs_compiler
@pytest.mark.skipif(not hasattr(os, 'geteuid'), reason='files have no owner and mode here')
@pytest.mark.parametrize(
    ('mode', 'user', 'used'),
    [
        (0o755, 'own', True),
        (0o775, 'own', False),
        (0o700, 'another', False),
        (0o700, 'root', True),  # in a cache that a user mounted
    ],
)
def test_libraries_are_kept_where_nobody_else_writes(
    tmp_path, builds, fresh, monkeypatch, mode, user, used
):
    folder = tmp_path / 'mmseg_cct'
    folder.mkdir()
    folder.chmod(mode)
    ids = dict(own=os.geteuid(), another=os.geteuid() + 1, root=0)
    monkeypatch.setattr(os, 'geteuid', lambda: ids[user])
    assert (ask() is not None) == used != ('set XDG_CACHE_HOME' in fresh[-1])
    assert folder.stat().st_mode & 0o777 == mode


def no_compiler(folder, patch):
    patch.setattr(module.shutil, 'which', lambda name: None)


def another_source(folder, patch):
    (folder / 'other.cpp').write_text('int nothing;')
    patch.setattr(module, 'SOURCE', folder / 'other.cpp')


@pytest.mark.parametrize(
    ('prepare', 'reason'),
    [
        (no_compiler, r'no g\+\+ or clang\+\+'),
        pytest.param(another_source, 'undefined symbol: native_losses', marks=needs_compiler),
    ],
)
def test_without_a_kernel_there_is_one_line(fresh, tmp_path, monkeypatch, prepare, reason):
    prepare(tmp_path, monkeypatch)
    assert ask() is None and ask() is None
    assert len(fresh) == 1 and re.search(reason, fresh[0]) and '\n' not in fresh[0]
    assert not list(tmp_path.glob('mmseg_cct/*'))  # the next process tries again
