import pytest

from mmseg_cct.writer.choices import BACKBONES
from mmseg_cct.writer.folder_plan import choose_sizes


def sizes(images, widths=None, backbone='mbv2', **options):
    return choose_sizes(images, widths or {}, BACKBONES[backbone], longest=512, **options)


@pytest.mark.parametrize(
    ('images', 'size', 'crop', 'backbone'),
    [
        ((328, 200), (328, 200), (168, 104), 'mbv2'),
        ((328, 200), (328, 200), (328, 200), 'r18'),
        ((328, 184), (328, 184), (328, 184), 'mbv2'),  # a half would be too small to learn from
        ((1000, 500), (512, 256), (256, 128), 'mbv2'),
        ((30, 2000), (8, 512), (8, 512), 'mbv2'),
    ],
)
def test_the_default_is_the_images_in_multiples_of_the_stride(images, size, crop, backbone):
    chosen = sizes(images, backbone=backbone)
    assert (chosen.size, chosen.crop, chosen.windows) == (size, crop, None)


def test_thin_objects_get_windows_unless_a_size_is_chosen():
    widths = {'pole': 3.0, 'road': 90.0}
    chosen = sizes((1024, 512), widths)
    assert chosen.size == (1024, 512) and chosen.windows['crop_size'] == (256, 512)
    assert '(pole)' in chosen.notes[0] and 'predicts 9 windows' in chosen.notes[0]
    for kept in (sizes((1024, 512), widths, size=(512, 256)),
                 sizes((1024, 512), widths, may_window=False)):  # fmt: skip
        assert kept.windows is None
    assert sizes((1024, 512), {'pole': 4.0}).windows is None  # two pixels are enough
    assert not sizes((512, 256), {'road': 90.0}).notes
