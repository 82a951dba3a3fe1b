from formats import drawn, of_supervisely

from mmseg_cct.annotations.readers import supervisely


def test_holes_of_supervisely_keep_their_rim(tmp_path):
    outer, hole = [[0, 0], [9, 0], [9, 8], [0, 8]], [[3, 3], [5, 3], [5, 5], [3, 5]]
    shape = dict(geometryType='polygon', points=dict(exterior=outer, interior=[hole]))
    mask = drawn(supervisely.read(of_supervisely(tmp_path, shape))) == 0
    assert mask.sum() == 90 - 9 and not mask[3:6, 3:6].any()
    outer[-1] = [0, 8.1]  # with fractions corners are no pixels
    mask = drawn(supervisely.read(of_supervisely(tmp_path, shape))) == 0
    assert mask.sum() == 72 - 4
