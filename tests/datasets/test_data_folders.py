from pathlib import Path

from mmengine.config import Config

from mmseg_cct.datasets.data_folders import data_folders


def test_every_data_set_of_a_config_counts(project_root):
    config = Config.fromfile(project_root / 'configs/cct/cct_r50_folder.py')
    expected = {'images', 'masks', 'val/images', 'val/masks'}
    assert data_folders(config) == {Path('data/mine', folder) for folder in expected}


def test_the_ways_to_name_a_folder():
    config = [
        dict(data_root='r', data_prefix=dict(img_path='i', seg_map_path='/m')),
        dict(data_prefix='p', ann_file='x'),
        dict(data_root='alone', data_prefix=dict(img_path='')),
        dict(deep=[dict(data_root='s', image_dir='i', mask_dir=None)]),
        dict(data_root=None, data_prefix=None),
        'data_root',
    ]
    expected = {'r/i', '/m', 'p', 'alone', 's/i'}
    assert data_folders(config) == set(map(Path, expected))
