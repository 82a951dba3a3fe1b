"""Pages of both kinds, from templates of the package."""

import jinja2
import pytest

from mmseg_cct.utils.markdown import Table
from mmseg_cct.utils.templates import render


def test_cells_of_tables_are_text_and_a_page_ends_with_a_line_break():
    page = render('analysis/clusters.md.jinja', ratios=Table(['image', '*'], [['a|<b>', '1.5']]))
    assert page.endswith('\n\n| image | \\* |\n| --- | ---: |\n| a\\|&lt;b> | 1.5 |\n')


def test_blocks_that_are_left_out_leave_no_empty_lines():
    table = Table(['in %'], [])
    given = dict(num_images='1 unlabelled image', precision=table, pictures=True)
    assert '\n\n\n' not in render('pseudo_labels/masks.md.jinja', **given)
    page = render('pseudo_labels/masks.md.jinja', **{**given, 'pictures': False})
    assert page.startswith('# Masks of 1 unlabelled image\n\nOf the pixels')
    assert page.endswith('\n\n| in % |\n| --- |\n')


def test_values_of_html_pages_are_text():
    given = dict(title='<b>', notes=[], highest=1.0, cases=[], candidates=0, key='</script>')
    page = render('analysis/review.html.jinja', **given)
    assert '<title>&lt;b&gt;</title>' in page


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'ratios' is undefined"):
        render('analysis/clusters.md.jinja')
