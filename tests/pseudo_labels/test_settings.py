import pytest
from mmengine.config import ConfigDict

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels.labels_from_maps import DenseCRF, Thresholds
from mmseg_cct.pseudo_labels.settings import read_settings


def test_reads_images_classes_and_defaults(weak):
    settings = read_settings(weak.load())
    assert [image.name for image in settings.images] == weak.names
    assert settings.images[2].path == str(weak.images / 'more/c.jpg')
    assert [image.class_ids for image in settings.images] == [(0,), (1,), (0, 1), ()]
    assert settings.classes == weak.classes
    assert settings.palette.tolist() == weak.palette
    assert settings.label_ids == (1, 2)  # by name, not by position
    assert settings.background == 0
    assert settings.thresholds == Thresholds(0.05, 0.30)
    assert settings.crf == DenseCRF(3, 3, 50, 5, 10, 10, 0.7)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (dict(scale=2), r'pseudo_labels has .*scale; expected images, segmentation, and'),
        (dict(background='sky'), r"background: 'sky' is not a class .*ground, thing, other"),
        (dict(thresholds=dict(background=0.5)), r'expected 0 <= background <= foreground'),
    ],
)
def test_a_wrong_value_is_named(weak, change, message):
    config = weak.load()
    config.pseudo_labels.update(change)
    with pytest.raises(UserError, match=message):
        read_settings(config)


def test_what_the_sections_lack_is_named(weak):
    config = weak.load()
    config.pseudo_labels.images.metainfo = ConfigDict(classes=('thing', 'sky'))
    with pytest.raises(UserError, match=r"images: 'sky' is not a class of pseudo_labels\.segm"):
        read_settings(config)
