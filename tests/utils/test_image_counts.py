from mmseg_cct.utils import image_counts
from mmseg_cct.utils.image_counts import ImageCounts, SharedImages


def test_images_are_counted_and_an_unreadable_one_is_one_line():
    with SharedImages(['a.png', 'b.png', 'c.png'], skipped=2) as share:
        assert share.own == ['a.png', 'b.png', 'c.png']
        share.written(2)
        share.unreadable('c.png', ValueError('cut\noff'))
    counts = share.total()
    assert counts.failed == ['c.png: cannot be read (cut off); expected a readable image']
    assert counts.describe('out') == '2 written to out, 2 there already, 1 unreadable'


def test_counts_of_all_processes_add_up(monkeypatch):
    parts = [ImageCounts(2, 5, ['b']), ImageCounts(3, 5, ['c', 'a'])]
    monkeypatch.setattr(image_counts, 'gather', lambda own: parts)
    assert SharedImages([], skipped=5).total() == ImageCounts(5, 5, ['a', 'b', 'c'])
