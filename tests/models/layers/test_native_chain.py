import hashlib
import itertools
import os
import pwd
import re
import time
from pathlib import Path

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


def swapped(tensor):
    """The same values, in another order in memory."""
    return tensor.mT.contiguous().mT


@needs_compiler
@pytest.mark.parametrize(
    ('change', 'found'),
    [
        (torch.Tensor.double, 'contiguous torch.float64 on cpu'),
        (torch.Tensor.bfloat16, 'contiguous torch.bfloat16 on cpu'),
        (swapped, 'strided torch.float32 on cpu'),
        (lambda tensor: tensor.to('meta'), 'contiguous torch.float32 on meta'),
    ],
)
def test_every_tensor_that_it_would_misread_is_an_error(change, found):
    chain = make_chain(1, 2, 2)
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
        lambda: kernel.fisher_product(features, features, broken),
    ):
        with pytest.raises(ValueError, match=f'NativeChain: {found}; expected contiguous'):
            call()


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
def test_a_library_is_built_once_and_that_of_another_user_left_alone(
    tmp_path, builds, fresh, monkeypatch
):
    assert None not in [*ask_twice(), *ask_as_another_process()]
    assert builds() == 1
    assert len(fresh) == 2 and all('native kernel' in line for line in fresh)
    folder = tmp_path / 'mmseg_cct'
    assert sorted(path.suffix for path in folder.iterdir()) == ['.sha256', '.so']
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, 'geteuid', lambda: os.getuid() + 1)
    assert ask_as_another_process() == [None, None]
    assert builds() == 1
    assert 'expected a folder of the user alone (set XDG_CACHE_HOME)' in fresh[-1]


def zero_a_page(library, record):
    with library.open('r+b') as file:
        file.seek(4096)
        file.write(bytes(4096))


def replace_by_a_link(library, record):
    library.rename(f'{library}.0')
    library.symlink_to(f'{library}.0')


@needs_compiler
@pytest.mark.parametrize(
    'damage',
    [
        zero_a_page,
        replace_by_a_link,
        lambda library, record: os.truncate(library, library.stat().st_size - 4096),
        lambda library, record: os.truncate(library, 0),
        lambda library, record: os.truncate(record, 0),
        lambda library, record: record.unlink(),
        lambda library, record: library.chmod(0o602),
    ],
    ids=['zeroed', 'link', 'cut', 'empty', 'empty hash', 'no hash', 'writable'],
)
def test_a_library_that_is_not_as_it_was_built_is_built_again(tmp_path, builds, fresh, damage):
    ask_twice()
    (library,) = (tmp_path / 'mmseg_cct').glob('*.so')
    record = library.with_suffix('.sha256')
    content = library.read_bytes()
    library.unlink()  # this process has mapped it
    library.write_bytes(content)
    library.chmod(0o600)
    damage(library, record)
    assert None not in ask_as_another_process()
    assert builds() == 2
    assert library.lstat().st_mode & 0o777 == 0o600
    assert hashlib.sha256(library.read_bytes()).hexdigest() == record.read_text()


@needs_compiler
def test_what_a_killed_build_left_is_removed_and_others_may_not_write(tmp_path, builds, fresh):
    folder = tmp_path / 'mmseg_cct'
    killed, part, running = (folder / name for name in ('tmpold', '.1-ab.part', 'tmpnew'))
    killed.mkdir(parents=True)
    folder.chmod(0o777)
    (killed / 'native_chain.so').touch()
    part.touch()
    running.mkdir()
    for old in (killed, part):
        os.utime(old, (time.time() - 3 * module.TIME_LIMIT,) * 2)
    assert None not in ask_twice()
    assert not killed.exists() and not part.exists() and running.exists()
    assert folder.stat().st_mode & 0o777 == 0o700


def is_running(pid):
    stat = Path(f'/proc/{pid}/stat')
    return stat.exists() and stat.read_text().rpartition(')')[2].split()[0] != 'Z'


def test_a_compiler_that_hangs_is_ended_with_what_it_has_started(fresh, use_compiler, monkeypatch):
    noted = use_compiler('sleep 100 & echo $! > "$noted"; wait')
    monkeypatch.setattr(module, 'TIME_LIMIT', 1)
    begin = time.perf_counter()
    assert ask_twice() == [None, None]
    assert time.perf_counter() - begin < 50
    assert len(fresh) == 1 and 'timed out after 1 seconds' in fresh[0]
    while is_running(noted.read_text().strip()):
        assert time.perf_counter() - begin < 50
        time.sleep(0.1)


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
        (lambda *args: args[2]('exit 0'), 'OSError|FileNotFoundError'),  # writes no library
        (lambda *args: args[2]('for last; do :; done; : > "$last"'), 'OSError'),  # an empty one
    ],
)
def test_without_a_kernel_there_is_one_line(
    fresh, tmp_path, monkeypatch, use_compiler, prepare, told
):
    prepare(tmp_path, monkeypatch, use_compiler)
    assert ask_twice() == [None, None]
    assert len(fresh) == 1 and re.search(told, fresh[0]) and '\n' not in fresh[0]
    assert not list(tmp_path.glob('mmseg_cct/*.sha256'))
