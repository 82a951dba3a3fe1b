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


def test_a_class_or_setting_that_is_not_known_is_named(weak):
    config = weak.load()
    config.pseudo_labels.scale = 2
    with pytest.raises(TypeError, match="'scale'"):
        read_settings(config)
    config = weak.load()
    config.pseudo_labels.images.metainfo = ConfigDict(classes=('thing', 'sky'))
    with pytest.raises(UserError, match=r"images: 'sky' is not a class of pseudo_labels\.segm"):
        read_settings(config)
