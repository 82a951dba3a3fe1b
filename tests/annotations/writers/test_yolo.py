import yaml

from mmseg_cct.annotations.export import export_masks


def test_yolo_names_of_any_script_are_yaml(masks, tmp_path):
    export_masks('yolo', tmp_path, masks, {'𐌰': (0, 0, 0), 'a "b"': (1, 1, 1)}, tmp_path / 'photos')
    names = yaml.safe_load((tmp_path / 'yolo/data.yaml').read_text('utf-8'))['names']
    assert names == {0: '𐌰', 1: 'a "b"'}
