"""Templates of the package; that values are text in a page of HTML is in labelling."""

import jinja2
import pytest

from mmseg_cct.utils.templates import render


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match='is undefined'):
        render('studies/ablation.md.jinja')
