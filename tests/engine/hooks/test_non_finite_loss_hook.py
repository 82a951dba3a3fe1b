from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks.non_finite_loss_hook import _files


def test_a_file_with_several_views_is_named_once():
    def samples(*names):
        return [SegDataSample(metainfo=dict(img_path=name)) for name in names]

    views = dict(
        labeled=samples('a.jpg'),
        unlabeled=samples('b.jpg', 'c.jpg'),
        unlabeled_strong_0=samples('b.jpg', 'c.jpg'),
    )
    assert _files(dict(data_samples=views)) == 'a.jpg, b.jpg, c.jpg'
