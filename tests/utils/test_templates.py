"""Pages of both kinds, from templates of the package."""

import re

import jinja2
import pytest
from markdown_it import MarkdownIt

from mmseg_cct.utils.templates import Table, escaped, markdown_table, render


def test_cells_of_tables_are_text_and_a_page_ends_with_a_line_break():
    page = render('studies/clusters.md.jinja', ratios=Table(['image', '*'], [['a|<b>', '1.5']]))
    assert page.endswith('\n\n| image | \\* |\n| --- | ---: |\n| a\\|&lt;b> | 1.5 |\n')


def test_blocks_that_are_left_out_leave_no_empty_lines():
    table = Table(['in %'], [])
    given = dict(num_images='1 unlabelled image', precision=table, pictures=True)
    assert '\n\n\n' not in render('pseudo_labels/masks.md.jinja', **given)
    page = render('pseudo_labels/masks.md.jinja', **{**given, 'pictures': False})
    assert page.startswith('# Masks of 1 unlabelled image\n\nFor each class')
    assert page.endswith('\n\n| in % |\n| --- |\n')


def test_values_of_html_pages_are_text_and_one_that_is_missing_an_error():
    given = dict(title='<b>', notes=[], highest=1.0, cases=[], candidates=0, key='</script>')
    page = render('studies/review.html.jinja', **given)
    assert '<title>&lt;b&gt;</title>' in page
    with pytest.raises(jinja2.UndefinedError, match="'ratios' is undefined"):
        render('studies/clusters.md.jinja')


PARSER = MarkdownIt('commonmark').enable(['table', 'strikethrough'])
NAMES = [
    '<script>alert(1)</script>',
    '![x](http://example.invalid/x.png)',
    '[x](javascript:1) [y][z]',
    '**bold** *it* _it_ __init__ ~~gone~~ `code`',
    'a &lt; b & c &#33;',
    r'C:\dir\*',
    '# 1',
    '> quoted',
    '- item',
    '+ item',
    '1. item',
    'traffic_light_2',
    'see http://a.b/c or www.a.b',
]


@pytest.mark.parametrize('name', NAMES)
def test_no_name_is_markup(name):
    *_, inline, _ = PARSER.parse(escaped(name))
    assert [token.type for token in inline.children] == ['text'] * len(inline.children)
    assert ''.join(token.content for token in inline.children) == name
    assert inline.level == 1  # a paragraph of its own, in no list or quote
    # GitHub makes links of what these are in, unless the source breaks them up
    assert not re.search(r'://|www\.', escaped(name).replace(r'\:', ''))


def test_a_name_is_one_line_and_usual_ones_stay_as_they_are():
    assert escaped('a\n\n# b\t c') == 'a # b c'
    for text in ('+11.5', '−0.8', 'F-Drop, K=2', 'a_b.png', '91.2 %', '2 × 3 (τ = 0)', '12'):
        assert escaped(text) == text
    assert escaped(escaped('*')) == r'\*'


def test_text_left_and_numbers_right_unless_told():
    assert markdown_table(['class', 'IoU', ''], [['sky', '90.1', '+1'], ['car', '', '–']]) == (
        '| class | IoU |  |\n| --- | ---: | ---: |\n| sky | 90.1 | +1 |\n| car |  | – |'
    )
    assert markdown_table(['n', 'at'], align='rl') == '| n | at |\n| ---: | --- |'
