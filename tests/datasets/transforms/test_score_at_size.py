import numpy as np

from mmseg_cct.datasets import ScoreAtSize


def test_the_mask_has_the_size_and_nothing_but_its_labels():
    mask = np.array([[0, 7], [255, 3]], np.uint8)
    results = ScoreAtSize((4, 6))(dict(gt_seg_map=mask, ori_shape=(2, 2), img_shape=(8, 8)))
    assert results['ori_shape'] == (4, 6) and results['img_shape'] == (8, 8)
    assert results['gt_seg_map'].tolist() == mask.repeat(2, 0).repeat(3, 1).tolist()
    # without a mask the image keeps its size
    assert ScoreAtSize((4, 6))(dict(ori_shape=(2, 2))) == dict(ori_shape=(2, 2))
