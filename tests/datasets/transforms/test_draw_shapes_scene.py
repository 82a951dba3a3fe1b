from mmseg_cct.datasets import DrawShapesScene


def test_an_unlabelled_scene_carries_no_mask():
    results = DrawShapesScene(with_seg_map=False)(dict(scene=(0, 0, 32), seg_fields=[]))
    assert 'gt_seg_map' not in results and results['seg_fields'] == []
    assert repr(DrawShapesScene(with_seg_map=False)) == 'DrawShapesScene(with_seg_map=False)'
