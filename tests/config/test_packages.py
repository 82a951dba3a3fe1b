from importlib.metadata import PackageNotFoundError

from mmengine.config.utils import MODULE2PACKAGE

from mmseg_cct.config import packages


def test_the_original_distribution_keeps_its_name(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setitem(MODULE2PACKAGE, 'mmseg', 'mmsegmentation')
    monkeypatch.setattr(packages.metadata, 'version', missing)
    packages.register_packages()
    assert MODULE2PACKAGE['mmseg'] == 'mmsegmentation'
