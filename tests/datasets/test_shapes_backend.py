import mmcv
import numpy as np
import pytest
from mmengine import fileio

from mmseg_cct.datasets import DrawShapesScene


def test_the_scene_can_be_read_again_by_its_address():
    results = DrawShapesScene()(dict(scene=(3, 12, 48), seg_fields=[]))
    assert results['img_path'] == 'shapes://3/48/000012.png'
    again = mmcv.imfrombytes(fileio.get(results['img_path']))
    assert np.array_equal(again, results['img'])
    with pytest.raises(NotImplementedError, match='a drawn scene is no text'):
        fileio.get_text(results['img_path'])
