import exports
import numpy as np
import pytest
from drawing import drawn
from folders import save
from hypothesis import settings

# the same inputs in every run, however slow the machine
settings.register_profile('mmseg_cct', derandomize=True, deadline=None)
settings.load_profile('mmseg_cct')


@pytest.fixture
def photos(tmp_path):
    return exports.make_photos(tmp_path)


@pytest.fixture
def masks(tmp_path):
    """Images and masks of two sizes, one in a subfolder with a name that needs quoting."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 4, (9, 13), np.uint8).repeat(3, 0).repeat(3, 1)
    masks = {}
    for name, mask in (('a.jpg', drawn()), ('sub dir/ä & b.png', noise)):
        masks[name] = (tmp_path / 'true' / name).with_suffix('.png')
        save(masks[name], mask)
        save(tmp_path / 'photos' / name, mask[..., None].repeat(3, 2))
    return masks
