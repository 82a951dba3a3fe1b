import itertools
import os
import pwd
import re

import pytest
import torch
from banks import assert_close_relative, needs_compiler

from mmseg_cct.models.layers import native_chain as module
from mmseg_cct.models.layers.chunking import Chunking
from mmseg_cct.models.layers.native_chain import native_chain
from mmseg_cct.models.layers.stacked_decoders import Chain, decode
from mmseg_cct.models.perturbations.intermediate_vat import FisherProduct

K = 3
AUTO = Chunking(compile='auto')
# levels, channels, classes, final activation; the last ones are of other tests too
shapes = pytest.mark.parametrize(
    ('levels', 'channels', 'classes', 'final_activation'),
    [(1, 2, 2, False), (2, 7, 5, False), (2, 13, 13, True), (3, 21, 21, False)],
)


def make_chain(levels, channels, classes, final_activation=False):
    torch.manual_seed(0)
    widths = [channels] * levels + [classes]
    weights = [torch.randn(K, 4 * o, i) * (2 / i) ** 0.5 for i, o in itertools.pairwise(widths)]
    biases = [0.1 * torch.randn(K, 4 * o, 1) for o in widths[1:]]
    return Chain(weights, biases, final_activation)


def assert_close(actual, expected):
    assert_close_relative(actual, expected, 1e-5)


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
    size, pixels = 160, 4**levels
    features = torch.randn(K, channels, size)
    seg_logits = 3 * torch.randn(classes, pixels, size)
    weights = torch.rand(2, pixels, size)
    weights[..., :64] = 0  # where no pixel of a position counts it is skipped
    labels = torch.randint(0, classes, (pixels, size))
    factors = (0.7, 1.3)
    squared, entropy = terms != 'entropy', terms != 'squared'

    leaf = features.clone().requires_grad_()
    parameters = [[t.clone().requires_grad_() for t in of_chain] for of_chain in chain[:2]]
    predicted = decode(leaf, Chain(*parameters, final_activation))
    predicted = predicted.flatten(2).unflatten(2, (pixels, size))
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
    assert (grad[..., :64] == 0).all()
    for actual, of in zip((*grads[0], *grads[1]), (*parameters[0], *parameters[1])):
        assert_close(actual, of.grad)
    votes = (predicted.argmax(1) == seg_logits.argmax(0)).float().sum(0)
    if not final_activation:  # whose zeros are ties
        assert torch.equal(agreeing, votes)


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


@needs_compiler
def test_the_same_number_of_threads_gives_the_same_bits(threads):
    chain = make_chain(2, 7, 5)
    features, seg_logits = torch.randn(K, 7, 640), torch.randn(5, 16, 640)
    kernel = native_chain(features, chain, AUTO)
    maps = (torch.rand(16, 640), None, None)
    first, second = (kernel.losses(features, chain, seg_logits, maps, (1, 0)) for _ in range(2))
    for one, two in zip(first[0][1] + [first[1]], second[0][1] + [second[1]]):
        assert torch.equal(one, two)


@needs_compiler
def test_extreme_predictions_stay_finite():
    chain = make_chain(1, 2, 2)
    features, seg_logits = 1e4 * torch.randn(K, 2, 64), 1e4 * torch.randn(2, 4, 64)
    kernel = native_chain(features, chain, AUTO)
    maps = (torch.ones(4, 64), None, None)
    (grad, *_), values, _ = kernel.losses(features, chain, seg_logits, maps, (1, 0))
    assert grad.isfinite().all() and values.isfinite().all() and (values[0] > 0).all()


@needs_compiler
@pytest.mark.parametrize('where', ['target', 'features', 'weights', 'biases'])
@pytest.mark.parametrize('value', [torch.nan, torch.inf])
def test_what_is_not_finite_shows_where_no_pixel_counts(where, value):
    """As in the eager path: 0 times NaN is NaN."""
    chain = make_chain(1, 2, 2)
    features, seg_logits, none = torch.randn(K, 2, 64), torch.randn(2, 4, 64), torch.zeros(4, 64)
    kernel = native_chain(features, chain, AUTO)
    maps, factors = (none, None, None), (1, 0)
    _, values, _ = kernel.losses(features, chain, seg_logits, maps, factors)
    assert (values == 0).all()
    {
        'target': seg_logits,
        'features': features[0],
        'weights': chain.weights[0][0],
        'biases': chain.biases[0][0],
    }[where].view(-1)[-1] = value
    (grad, *_), values, _ = kernel.losses(features, chain, seg_logits, maps, factors)
    assert values[0].isnan().tolist() == [True, *[where == 'target'] * 2]
    assert grad[0].isnan().any()


@pytest.mark.parametrize(
    ('compile', 'dtype'), [(False, torch.float32), (True, torch.float32), ('auto', torch.float64)]
)
def test_other_settings_have_no_kernel(compile, dtype):
    features = torch.randn(K, 7, 64, dtype=dtype)
    assert native_chain(features, make_chain(2, 7, 5), Chunking(compile=compile)) is None
    assert native_chain(torch.randn(K, 7, 64), Chain((), (), False), AUTO) is None


@pytest.fixture
def fresh(tmp_path, monkeypatch, messages):
    """Nothing built yet; the lines that are logged."""
    module._built.cache_clear()
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    yield messages
    module._built.cache_clear()


def ask_twice():
    chain = make_chain(1, 2, 2)
    return [native_chain(torch.randn(K, 2, 8), chain, AUTO) for _ in range(2)]


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """A library that `ask_twice` can load."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp('built')
        patch.setenv('XDG_CACHE_HOME', str(folder))
        ask_as_another_process()
        (library,) = folder.glob('mmseg_cct/*.so')
        return library


@pytest.fixture
def use_compiler(tmp_path, monkeypatch):
    """Puts a script in the compiler's place; gives the file that it may write to."""
    noted = tmp_path / 'noted'

    def use(script):
        folder = tmp_path / 'bin'
        folder.mkdir(exist_ok=True)
        file = folder / 'g++'
        file.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\nnoted={noted}\n{script}\n')
        file.chmod(0o700)
        monkeypatch.setenv('PATH', f'{folder}:{os.environ["PATH"]}')
        return noted

    return use


@pytest.fixture
def builds(built, fresh, use_compiler):
    """A compiler that copies; gives the number of its calls so far."""
    noted = use_compiler(f'echo >> "$noted"; for last; do :; done; cp {built} "$last"')
    return lambda: len(noted.read_text()) if noted.exists() else 0


def ask_as_another_process():
    module._built.cache_clear()
    return ask_twice()


@needs_compiler
def test_a_library_is_built_once(tmp_path, builds, fresh):
    assert None not in [*ask_twice(), *ask_as_another_process()]
    assert builds() == 1
    assert len(fresh) == 2 and all('native kernel' in line for line in fresh)
    assert [path.suffix for path in (tmp_path / 'mmseg_cct').iterdir()] == ['.so']
    assert (tmp_path / 'mmseg_cct').stat().st_mode & 0o777 == 0o700


@needs_compiler
@pytest.mark.parametrize(
    ('mode', 'user', 'used'),
    [
        (0o755, 1000, True),
        (0o777, 1000, False),
        (0o775, 1000, False),
        (0o700, 1001, False),  # another user's
        (0o700, 0, True),  # root, in a cache that a user mounted
        (0o700, None, True),  # Windows
    ],
)
def test_libraries_are_kept_where_nobody_else_writes(
    tmp_path, builds, fresh, monkeypatch, mode, user, used
):
    folder = tmp_path / 'mmseg_cct'
    folder.mkdir()
    folder.chmod(mode)
    if os.geteuid() == 0:
        os.chown(folder, 1000, -1)
    else:
        user = user and user - 1000 + os.geteuid()
    if user is None:
        monkeypatch.delattr(os, 'geteuid')
    else:
        monkeypatch.setattr(os, 'geteuid', lambda: user)
    assert (ask_twice() != [None, None]) == used
    assert ('set XDG_CACHE_HOME' in fresh[-1]) != used
    assert folder.stat().st_mode & 0o777 == mode


def no_compiler(folder, patch, use):
    patch.setattr(module.shutil, 'which', lambda name: None)


def another_source(text):
    def prepare(folder, patch, use):
        (folder / 'other.cpp').write_text(text)
        patch.setattr(module, 'SOURCE', folder / 'other.cpp')

    return prepare


def no_home_directory(folder, patch, use):
    use('exit 0')
    for name in ('HOME', 'XDG_CACHE_HOME'):
        patch.delenv(name, raising=False)
    patch.setattr(pwd, 'getpwuid', {}.__getitem__)


@pytest.mark.parametrize(
    ('prepare', 'told'),
    [
        (no_compiler, r'no g\+\+ or clang\+\+'),
        *(
            pytest.param(another_source(text), told, marks=needs_compiler)
            for text, told in (
                ('#error not today\n#error nor tomorrow\n', 'not today'),
                ('int nothing;', 'undefined symbol: native_losses'),
            )
        ),
        (lambda folder, *_: (folder / 'mmseg_cct').write_text('a file in the way'), 'mmseg_cct'),
        (no_home_directory, 'home directory'),
        (lambda *args: args[2](r"printf 'm\351moire\n' >&2; exit 1"), 'm\ufffdmoire'),
        (lambda *args: args[2]('exit 0'), 'FileNotFoundError'),  # writes no library
        (lambda *args: args[2]('for last; do :; done; : > "$last"'), 'OSError'),  # an empty one
    ],
)
def test_without_a_kernel_there_is_one_line(
    fresh, tmp_path, monkeypatch, use_compiler, prepare, told
):
    prepare(tmp_path, monkeypatch, use_compiler)
    assert ask_twice() == [None, None]
    assert len(fresh) == 1 and re.search(told, fresh[0]) and '\n' not in fresh[0]
    assert not list(tmp_path.glob('mmseg_cct/*'))  # the next process tries again
