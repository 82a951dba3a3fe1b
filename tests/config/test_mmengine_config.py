from importlib.metadata import PackageNotFoundError

import pytest
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE

import mmseg_cct.plugin  # noqa: F401
from mmseg_cct.config import mmengine_config


def test_a_dump_that_fails_leaves_the_earlier_file(tmp_path, monkeypatch):
    file = tmp_path / 'a.py'
    Config(dict(a=1)).dump(file)

    def full(config):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(Config, 'pretty_text', property(full))
    with pytest.raises(OSError, match='No space left') as caught:
        Config(dict(a=2)).dump(str(file))
    assert caught.value.filename == str(file)
    monkeypatch.undo()
    assert Config.fromfile(file).a == 1 and list(tmp_path.iterdir()) == [file]


def test_other_formats_and_texts_are_as_before(tmp_path):
    Config(dict(a=1)).dump(tmp_path / 'a.json')
    assert Config.fromfile(tmp_path / 'a.json').a == 1
    assert Config(dict(a=1)).dump() == Config(dict(a=1)).pretty_text


def test_the_original_distribution_keeps_its_name(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setitem(MODULE2PACKAGE, 'mmseg', 'mmsegmentation')
    monkeypatch.setattr(mmengine_config.metadata, 'version', missing)
    mmengine_config.register_packages()
    assert MODULE2PACKAGE['mmseg'] == 'mmsegmentation'
