"""Tables and text in Markdown, as a parser of Markdown reads them."""

import re

import pytest
from markdown_it import MarkdownIt

from mmseg_cct.utils.markdown import escaped, markdown_table

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
]


@pytest.mark.parametrize('name', NAMES)
def test_no_name_is_markup(name):
    *_, inline, _ = PARSER.parse(escaped(name))
    assert [token.type for token in inline.children] == ['text'] * len(inline.children)
    assert ''.join(token.content for token in inline.children) == name
    assert inline.level == 1  # a paragraph of its own, in no list or quote


@pytest.mark.parametrize('name', ['see http://a.b/c', 'www.a.b'])
def test_addresses_are_no_links_on_github(name):
    """It makes links of what `://` or `www.` is in, unless the source breaks them up."""
    assert not re.search(r'://|www\.', escaped(name).replace(r'\:', ''))
    assert PARSER.renderInline(escaped(name)) == name


def test_a_name_is_one_line_and_usual_ones_stay_as_they_are():
    assert escaped('a\n\n# b\t c') == 'a # b c'
    for text in ('+11.5', '−0.8', 'F-Drop, K=2', 'a_b.png', '91.2 %', '2 × 3 (τ = 0)', '12'):
        assert escaped(text) == text
    assert escaped(escaped('*')) == r'\*'


def test_text_left_and_numbers_right():
    assert markdown_table(['class', 'IoU', ''], [['sky', '90.1', '+1'], ['car', '', '–']]) == (
        '| class | IoU |  |\n| --- | ---: | ---: |\n| sky | 90.1 | +1 |\n| car |  | – |'
    )


def test_the_head_alone_with_its_own_alignment():
    assert markdown_table(['n', 'at'], align='rl') == '| n | at |\n| ---: | --- |'


def test_a_bar_in_a_cell_ends_no_cell():
    table = markdown_table(['a|b', 'IoU'], [['c|d', '1']])
    assert table == '| a\\|b | IoU |\n| --- | ---: |\n| c\\|d | 1 |'
