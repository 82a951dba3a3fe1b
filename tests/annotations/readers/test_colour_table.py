import numpy as np
import pytest
from exports import BOXES, COLOURS, HEIGHT, WIDTH, region, save, scene
from importing import ids, masks_of

from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.errors import UserError

IDS = np.where(region('car'), 2, region('road')).astype(np.uint8)
PIXELS = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
for label in BOXES:
    PIXELS[region(label)] = COLOURS[label]


def test_masks_beside_a_table_of_their_colours(tmp_path, photos):
    """Roboflow's values and CVAT's colours of CamVid, with their images."""
    photo = (photos / 'a/1.jpg').read_bytes()
    robo = tmp_path / 'robo'
    save(robo / 'train/_classes.csv', b'Pixel Value, Class\n0, background\n1, road\n2, car\n')
    save(robo / 'train/1.jpg', photo)
    masks_of(robo, IDS, 'train/1_mask.png')
    camvid = tmp_path / 'camvid'
    save(camvid / 'label_colors.txt', b'0 0 0 background\n0 0 255 road\n255 0 0 car\n')
    save(camvid / 'train/1.jpg', photo)
    masks_of(camvid, PIXELS, 'trainannot/1.png')
    for source in (robo, camvid):
        done = import_masks(source, tmp_path / 'out' / source.name, rest='background')
        assert (done.failed, done.new, done.images) == ([], 1, 1)
        mask = ids(tmp_path / 'out' / source.name, 'train/1')
        assert np.array_equal(mask, scene(0, car=2, road=1))
    save(robo / 'valid/_classes.csv', b'Pixel Value, Class\n0, car\n')
    with pytest.raises(UserError, match='differs from train/_classes'):
        import_masks(robo, tmp_path / 'more', rest='background')
