import os

import numpy as np
import pytest
from mmengine.visualization import LocalVisBackend
from PIL import Image


@pytest.mark.parametrize('name', ['a', 'b/c', os.fsdecode(b'caf\xe9')])
def test_a_picture_is_saved_under_any_name(name, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    folder = tmp_path / os.fsdecode(b'\xe9')
    LocalVisBackend(str(folder)).add_image(name, image, 3)
    assert np.array_equal(Image.open(folder / f'vis_image/{name}_3.png'), image)
