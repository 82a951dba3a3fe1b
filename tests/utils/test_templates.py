"""Pages of both kinds, from templates of the package."""

import jinja2
import pytest

from mmseg_cct.utils.templates import render


def test_values_of_html_pages_are_text_and_one_that_is_missing_an_error():
    values = dict(title='<b>', note='', highest=1.0, marks=('', ''), key='</script>')
    case = dict(name='a', detail='', width=1, height=1, photo='', thumbnail='')
    values['cases'] = [dict(case, layers=[], legend=[])]
    page = render('labelling/review.html.jinja', **values)
    assert '<title>&lt;b&gt;</title>' in page
    with pytest.raises(jinja2.UndefinedError, match='is undefined'):
        render('studies/ablation.md.jinja')
