import cv2
import numpy as np
import pytest
import torch

from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS
from mmseg_cct.engine.frozen_features import (
    WhitenedFeatures,
    load_encoder,
    read_picture,
)


@pytest.fixture
def model():
    model = load_config(str(CONFIGS / '_base_/models/cct_mbv2-jpu.py'), {}).model
    model.backbone.init_cfg = None
    return model


@pytest.mark.parametrize(('size', 'grid'), [((64, 48), (20, 15)), ((30, 900), (1, 20))])
def test_features_have_a_cell_for_16_pixels_of_the_longest_320(model, size, grid):
    features = load_encoder(model, 'cpu')(np.zeros((*size, 3), np.uint8))
    assert features.shape == (*grid, 32 + 96 + 320) and np.isfinite(features).all()


def test_maps_of_two_sizes_are_joined_on_the_finer_grid(model):
    picture = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    torch.manual_seed(0)
    joined = load_encoder(model, 'cpu', (64, 32))(picture)
    torch.manual_seed(0)
    fine = load_encoder(model, 'cpu', (64,))(picture)
    assert joined.shape == (3, 4, 2 * 448)
    assert joined[..., :448] == pytest.approx(fine, rel=1e-5)


def test_features_are_whitened_and_kept_until_an_image_changes(model, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    looked_at = []

    def encode(picture):
        looked_at.append(picture)
        return cv2.resize(picture, (6, 4)).astype(np.float32)

    rng, paths = np.random.default_rng(0), []
    for index in range(5):
        paths.append(str(tmp_path / f'{index}.png'))
        cv2.imwrite(paths[-1], rng.integers(0, 255, (8, 12, 3), np.uint8))

    def features(path):
        whitened = WhitenedFeatures(encode, model, paths, str(tmp_path))
        return whitened(path, read_picture(path))

    points = np.concatenate([features(path).reshape(-1, 3) for path in paths])
    # from every second row of the pool
    assert np.cov(points, rowvar=False) == pytest.approx(np.eye(3), abs=0.6)
    looked_at.clear()
    assert (features(paths[0]) == points[:24].reshape(4, 6, 3)).all() and not looked_at
    cv2.imwrite(paths[0], np.zeros((9, 12, 3), np.uint8))
    features(paths[0])
    assert len(looked_at) == 1


@pytest.mark.parametrize(
    ('shape', 'dtype', 'scale'),
    [
        ((9, 7), 'uint8', 1), ((9, 7), 'uint16', 9),
        ((9, 7, 3), 'uint16', 9), ((9, 7, 4), 'uint8', 1),
    ],
)  # fmt: skip
def test_any_channels_and_bits_become_a_picture(tmp_path, shape, dtype, scale):
    pixels = (np.arange(np.prod(shape)).reshape(shape) * scale).astype(dtype)
    path = str(tmp_path / 'a.png')
    cv2.imwrite(path, pixels)
    picture = read_picture(path).astype(int)
    assert picture.shape == (9, 7, 3)
    channels = np.atleast_3d(pixels)[..., [2, 1, 0] if len(shape) == 3 else [0, 0, 0]]
    assert np.corrcoef(picture.ravel(), channels.ravel())[0, 1] > 0.999
    if scale > 1:
        assert picture.min() == 0 and picture.max() == 255
