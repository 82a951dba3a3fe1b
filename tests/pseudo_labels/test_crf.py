import numpy as np
import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels import crf as crf_module
from mmseg_cct.pseudo_labels.crf import DenseCRF, refined_labels, require_pydensecrf
from mmseg_cct.pseudo_labels.thresholds import Thresholds, labels_from_maps

SIZE = (40, 60)
DEFAULT = Thresholds()


@pytest.fixture(autouse=True)
def _needs_pydensecrf(request):
    if 'without_pydensecrf' not in request.node.name:
        pytest.importorskip('pydensecrf', reason='the CRF is its (extra `weak`)')


@pytest.fixture
def scene():
    """A red object on the left of a blue ground, and a map that covers half of the object."""
    image = np.zeros((*SIZE, 3), np.uint8)
    image[..., 2] = 200
    image[:, :30] = (200, 20, 20)
    maps = np.zeros((1, *SIZE), np.float32)
    maps[:, :, :22] = 0.2
    maps[:, :, :18] = 1.0
    return image, maps


def test_labels_grow_to_the_edge_of_the_object(scene):
    image, maps = scene
    before = labels_from_maps(maps, (3,), 0, DEFAULT)
    assert (before[:, 18:22] == 255).all() and (before[:, 22:] == 0).all()
    for background, rest in ((0, 0), (None, 255)):
        after = refined_labels(image, maps, (3,), background, DEFAULT, DenseCRF())
        assert (after[:, :30] == 3).all() and (after[:, 30:] == rest).all()


def test_an_isolated_label_gives_way_to_its_surroundings(scene):
    image, maps = scene
    maps[:, :, :30] = maps[:, 20, 50] = 1.0
    assert refined_labels(image, maps, (3,), 0, DEFAULT, DenseCRF())[20, 50] == 0


def test_between_the_two_cuts_a_pixel_is_ignored():
    # A grey image: the CRF has no edge to go to, and 0.2 is object at θ_bg, rest at θ_fg.
    maps = np.full((1, 20, 20), 0.2, np.float32)
    after = refined_labels(np.full((20, 20, 3), 90, np.uint8), maps, (3,), 0, DEFAULT, DenseCRF())
    assert (after == 255).all()


def test_an_image_without_classes_is_all_background():
    image = np.random.default_rng(0).integers(0, 256, (*SIZE, 3), np.uint8)
    maps = np.zeros((0, *SIZE), np.float32)
    assert (refined_labels(image, maps, (), 6, DEFAULT, DenseCRF()) == 6).all()
    assert (refined_labels(image, maps, (), None, DEFAULT, DenseCRF()) == 255).all()


def test_follows_the_equations_of_mean_field():
    """Against the definition: softmax(-unary - Potts of both kernels), in NumPy."""
    rng = np.random.default_rng(1)
    size, n = (6, 7), 3
    image = rng.integers(0, 40, (*size, 3), np.uint8)
    labels = rng.integers(0, n, size)
    crf = DenseCRF(iterations=3, bilateral_sxy=4, bilateral_srgb=20, bilateral_compat=2)

    place = np.stack(np.mgrid[: size[0], : size[1]], -1).reshape(-1, 2)
    colour = image.reshape(-1, 3).astype(float)

    def kernel(features):
        squared = ((features[:, None] - features[None]) ** 2).sum(-1)
        kernel = np.exp(-squared / 2)
        norm = 1 / np.sqrt(kernel.sum(1) + 1e-20)  # pydensecrf's default normalisation
        return norm[:, None] * kernel * norm[None]

    position = kernel(place / 3)
    bilateral = kernel(np.concatenate([place / 4, colour / 20], 1))
    unary = np.full((labels.size, n), -np.log(0.3 / (n - 1)))
    unary[np.arange(labels.size), labels.reshape(-1)] = -np.log(0.7)

    def softmax(energy):
        q = np.exp(-energy + energy.min(1, keepdims=True))
        return q / q.sum(1, keepdims=True)

    q = softmax(unary)
    for _ in range(3):
        q = softmax(unary - 3 * position @ q - 2 * bilateral @ q)
    expected = q.argmax(1).reshape(size)
    # the lattice filter approximates the kernels: pixels on the fence may differ
    clear = np.sort(q, 1)[:, -1] - np.sort(q, 1)[:, -2] > 0.3
    assert clear.mean() > 0.3
    assert (crf(image, labels, n) == expected).reshape(-1)[clear].all()


def test_without_pydensecrf_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr(crf_module.importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(UserError, match=r'pip install pydensecrf2 .* or pass --no-crf$'):
        require_pydensecrf()
