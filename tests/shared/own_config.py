"""Changes to the config that tests/writer/conftest.py writes."""

LABELED_CROP = "dict(type='RandomCrop', crop_size=(32, 32), cat_max_ratio=0.75)"
UNLABELED_CROP = dict(type='RandomCrop', crop_size=(32, 32), cat_max_ratio=1.0)
AUXILIARY = "dict(type='FCNHead', in_channels=32, in_index=2, channels=16, num_classes=3)"


def edit(own, old, new):
    text = own.read_text()
    assert old in text
    own.write_text(text.replace(old, new))
    return str(own)
