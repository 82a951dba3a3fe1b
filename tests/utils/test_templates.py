"""Pages of both kinds, from templates of the package."""

import jinja2
import pytest

from mmseg_cct.utils.templates import render


def test_values_of_html_pages_are_text_and_one_that_is_missing_an_error():
    given = dict(title='<b>', note='', highest=1.0, cases=[], key='</script>')
    page = render('studies/review.html.jinja', **given)
    assert '<title>&lt;b&gt;</title>' in page
    with pytest.raises(jinja2.UndefinedError, match='is undefined'):
        render('studies/ablation.md.jinja')
