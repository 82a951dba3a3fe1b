"""The pictures, and that training does not notice that they are drawn."""

import random
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import tiny
import torch
import world
from mmengine.config import Config
from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks import UnlabeledVisualizationHook, unlabeled_visualization_hook
from mmseg_cct.engine.hooks.unlabeled_visualization_hook import draw_predictions, predict
from mmseg_cct.engine.models import eval_sandbox
from mmseg_cct.errors import UserError

PALETTE = [[10, 20, 30], [200, 0, 0], [0, 200, 0]]
MAX_ITERS = 5


class Recorder(world.Recorder):
    """Keeps the modes of the modules too; some are frozen by hand."""

    def before_run(self, runner):
        super().before_run(runner)
        runner.model.backbone.layer1.eval()

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        runner.model.backbone.layer1.eval()  # `model.train()` thaws it

    def after_train_iter(self, runner, *args, **kwargs):
        super().after_train_iter(runner, *args, **kwargs)
        self.modes = [module.training for module in runner.model.modules()]


def train(trained, work_dir, hooks, max_iters=MAX_ITERS):
    """A training whose random draws depend on all that was drawn before."""
    recorder, config = Recorder(), Config.fromfile(str(trained.file))
    config.default_hooks, config.custom_hooks = dict(logger=None, checkpoint=None), hooks
    _, weights = world.run(config, work_dir, recorder, **{'train_cfg.max_iters': max_iters})
    states = torch.get_rng_state(), np.random.get_state()[1], random.getstate()
    return recorder, weights, states


HOOK = dict(type='UnlabeledVisualizationHook', interval=2, num_images=2)


@pytest.fixture(scope='module')
def with_hook(slow, trained, tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('with')
    return train(trained, work_dir, [dict(HOOK)]), work_dir


def test_training_does_not_notice_the_hook(trained, with_hook, tmp_path):
    (recorder, weights, states), _ = with_hook
    expected, expected_weights, expected_states = train(trained, tmp_path / 'without', [])
    assert recorder.logged == expected.logged and len(recorder.logged) == MAX_ITERS
    assert recorder.modes == expected.modes and not all(recorder.modes) and any(recorder.modes)
    assert weights.keys() == expected_weights.keys()  # with BatchNorm's statistics
    assert all(torch.equal(weights[name], expected_weights[name]) for name in weights)
    assert torch.equal(states[0], expected_states[0])
    assert np.array_equal(states[1], expected_states[1]) and states[2] == expected_states[2]


def test_pictures_of_the_same_images_at_every_interval(with_hook):
    _, work_dir = with_hook
    files = work_dir.glob('*/vis_data/vis_image/*.png')
    pictures = {file.name: cv2.imread(str(file)) for file in files}
    # after 2 and 4 iterations, and after the last
    names = [f'unlabeled_{index}.png_{step}.png' for index in (0, 1) for step in (2, 4, 5)]
    assert sorted(pictures) == names
    # image, main, disagreement and 7 perturbations in two rows of five, above a legend
    (shape,) = {picture.shape for picture in pictures.values()}
    assert shape[1] == 5 * 240 and 2 * 240 < shape[0] < 2 * 240 + 120
    first, later, other = (
        pictures[f'unlabeled_{name}.png'][:250, :240] for name in ('0.png_2', '0.png_5', '1.png_2')
    )
    assert np.array_equal(first, later) and not np.array_equal(first, other)


def test_other_ranks_draw_nothing(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(unlabeled_visualization_hook, 'is_main_process', lambda: False)
    train(trained, tmp_path / 'rank1', [dict(HOOK)], max_iters=1)
    assert not list(tmp_path.rglob('*.png'))


def test_predictions_have_the_images_size_whatever_its_padding():
    model, size = tiny.build(), (37, 45)
    item = dict(
        inputs=torch.randint(0, 256, (3, *size), dtype=torch.uint8),
        data_samples=SegDataSample(metainfo=dict(img_shape=size)),
    )
    with eval_sandbox(model, 0):
        image, main, auxiliary = predict(model, item)
        again = predict(model, item)[2]
    assert image.shape == (*size, 3) and main.shape == size
    assert np.array_equal(image[..., 0], item['inputs'][2])  # RGB
    assert list(auxiliary) == list(model.auxiliary_head.perturbations)
    assert all(ids.shape == (1, *size) for ids in auxiliary.values())
    assert np.array_equal(auxiliary['ObjectMasking'], again['ObjectMasking'])


@pytest.mark.parametrize('height, width', [(120, 240), (240, 180)])
def test_colours_and_disagreement(height, width):
    main = np.zeros((height, width), int)
    half = np.stack([main, main])
    half[0, :, : width // 2] = 2  # one of four decoders, on the left
    picture = draw_predictions(
        np.full((height, width, 3), 77, np.uint8),
        main,
        dict(x=half, y=np.stack([main, main])),
        'abc',
        PALETTE,
    )
    assert picture.dtype == np.uint8 and picture.shape[1] == 5 * 240
    tiles = np.split(picture[round(0.25 * 100) + 120 * height // width], 5)
    assert (tiles[0][60] == 77).all()
    assert tiles[1][60].tolist() == PALETTE[0]
    left, right = tiles[2][60].astype(int), tiles[2][180]
    assert right.max() <= 4 and left.sum() > 100
    assert tiles[3][60].tolist() == PALETTE[2]
    assert tiles[3][180].tolist() == tiles[4][60].tolist() == PALETTE[0]


@pytest.mark.parametrize('bank', [True, False])
def test_without_decoders_or_unlabelled_images_there_is_nothing_to_draw(bank):
    model = tiny.build() if bank else torch.nn.Linear(1, 1)
    loader = SimpleNamespace(dataset=[])
    runner = SimpleNamespace(model=torch.nn.DataParallel(model), train_dataloader=loader)
    with pytest.raises(UserError, match='no auxiliary decoders or no unlabelled images; expected'):
        UnlabeledVisualizationHook().before_train(runner)
