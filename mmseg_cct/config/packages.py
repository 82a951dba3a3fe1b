"""The table by which mmengine finds the configs of installed packages."""

from importlib import metadata

from mmengine.config.utils import MODULE2PACKAGE

from .shipped import SCOPE


def register_packages() -> None:
    """Lets `_base_ = 'mmseg_cct::…'` and `'mmseg::…'`, and `mmengine.hub`, find installed configs.

    mmengine's table has MMSegmentation's old name, so mmengine would install that distribution over
    the maintained one. A second call changes nothing.
    """
    MODULE2PACKAGE[SCOPE] = SCOPE
    try:
        metadata.version('onedl-mmsegmentation')
    except metadata.PackageNotFoundError:  # the original distribution, under the name in the table
        return
    MODULE2PACKAGE['mmseg'] = 'onedl-mmsegmentation'
