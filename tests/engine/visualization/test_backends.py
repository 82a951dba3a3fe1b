import os

import numpy as np
import pytest
from mmengine.visualization import LocalVisBackend
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mmseg_cct.engine.visualization import GroupedTensorboardVisBackend


@pytest.mark.parametrize(
    'name, tag',
    [('aux.consistency', 'aux/consistency'), ('lr', 'lr'), ('a.b.c', 'a/b.c')],
)
def test_the_part_of_the_model_is_the_group(tmp_path, name, tag):
    backend = GroupedTensorboardVisBackend(save_dir=str(tmp_path))
    backend.add_scalars({name: 0.5}, step=3)
    backend.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars(tag)] == [(3, 0.5)]


@pytest.mark.parametrize('name', ['a', 'b/c', os.fsdecode(b'caf\xe9')])
def test_a_picture_is_saved_under_any_name(name, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    folder = tmp_path / os.fsdecode(b'\xe9')
    LocalVisBackend(str(folder)).add_image(name, image, 3)
    assert np.array_equal(Image.open(folder / f'vis_image/{name}_3.png'), image)
