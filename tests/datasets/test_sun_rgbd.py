import numpy as np
import pytest
from folders import save
from mmseg.registry import DATASETS
from PIL import Image
from world import run_tool

# The column "Eigen et al./SceneNet Mapping" of SceneNet's table for the labels 1 to 37, and its
# numbering of the 13 classes from 1, both typed in apart from the names in the tool.
PUBLISHED = [
    12, 5, 6, 1, 4, 9, 10, 12, 13, 6, 8, 6, 13, 10, 6, 13, 6, 7, 7, 5, 7, 3, 2, 6, 11, 7, 7, 7, 7,
    7, 7, 6, 7, 7, 7, 7, 7,
]  # fmt: skip
NEW_IDS = np.array([255, *(number - 1 for number in PUBLISHED)])


@pytest.fixture
def sun(tmp_path):
    """Two test and three training images of different sizes, and their labels in that order."""
    rng = np.random.default_rng(0)
    names = ['test/img-000001', 'test/img-000002', *(f'train/img-00000{n}' for n in (1, 2, 3))]
    for number, name in enumerate(names, 1):
        pixels = rng.integers(0, 256, (20 + number, 30, 3), np.uint8)
        save(tmp_path / f'sun/images/{name}.jpg', pixels)
        save(tmp_path / f'labels/img-{number:06d}.png', pixels[..., 0] % 38)
    return tmp_path


def test_the_tool_writes_what_the_data_set_reads_and_keeps_other_masks(sun, capsys, refused):
    run_tool('convert_sun_rgbd', sun / 'labels', sun / 'sun')
    assert '5 masks written' in capsys.readouterr().out
    kinds = ('LoadImageFromFile', 'LoadAnnotations', 'PackSegInputs')
    dataset = DATASETS.build(dict(
        type='SUNRGBDDataset', data_root=str(sun / 'sun'),
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        pipeline=[dict(type=transform) for transform in kinds]))  # fmt: skip
    assert len(dataset) == 3
    for index in range(3):
        ids = np.asarray(Image.open(sun / 'labels' / f'img-{index + 3:06d}.png'))
        mask = dataset[index]['data_samples'].gt_sem_seg.data[0].numpy()
        assert np.array_equal(mask, NEW_IDS[ids])
    mask = sun / 'sun/masks/train/img-000002.png'
    Image.new('L', (30, 24), 3).save(mask)
    before = mask.read_bytes()
    error = refused('convert_sun_rgbd', sun / 'labels', sun / 'sun')
    assert 'train/img-000002.png: is there and differs from' in error
    assert mask.read_bytes() == before


@pytest.mark.parametrize('name', [None, 'img-000001.png'])
def test_a_file_that_does_not_fit_is_named(sun, name, refused):
    if name is None:  # one is missing
        (sun / 'labels/img-000005.png').unlink()
    else:
        Image.new('L', (30, 21), 99).save(sun / 'labels' / name)
    error = refused('convert_sun_rgbd', sun / 'labels', sun / 'sun')
    assert f'{sun / "labels" / (name or "")}: ' in error
