from mmseg_cct.config.shipped import method_names
from mmseg_cct.studies.titles import METHODS


def test_methods_of_studies_have_titles():
    """Studies train one domain, and `supervised` is its own title."""
    assert set(method_names()) - METHODS.keys() == {'supervised', 'cct-adv'}
