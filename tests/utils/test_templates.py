"""Pages of both kinds, from templates of the package."""

import jinja2
import pytest

from mmseg_cct.utils.templates import Table, markdown_table, render


def test_a_markdown_page_has_its_table_and_no_empty_lines():
    given = dict(seeds=[], results=Table(['a|b', '*'], []), domains={}, gains={}, figures=[])
    page = render('studies/ablation.md.jinja', **given)
    assert page.endswith('\n\n| a\\|b | * |\n| --- | ---: |\n') and '\n\n\n' not in page


def test_values_of_html_pages_are_text_and_one_that_is_missing_an_error():
    given = dict(title='<b>', note='', highest=1.0, cases=[], key='</script>')
    page = render('studies/review.html.jinja', **given)
    assert '<title>&lt;b&gt;</title>' in page
    with pytest.raises(jinja2.UndefinedError, match='is undefined'):
        render('studies/ablation.md.jinja')


def test_text_left_and_numbers_right_unless_told():
    assert markdown_table(['class', 'IoU', ''], [['sky', '90.1', '+1'], ['car', '', '–']]) == (
        '| class | IoU |  |\n| --- | ---: | ---: |\n| sky | 90.1 | +1 |\n| car |  | – |'
    )
    assert markdown_table(['n', 'at'], align='rl') == '| n | at |\n| ---: | --- |'
