"""What the page on configs names: every class, and the paper's symbols."""

import ast
import re

import pytest
from components import registered

from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import get_by_key


@pytest.fixture(scope='module')
def page(project_root):
    return (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')


def test_every_registered_class_is_named(page):
    assert set(registered()) <= set(re.findall(r'`(\w+)`', page))


def test_the_papers_symbols_are_where_the_page_says(page):
    section = page.partition("## The paper's symbols")[2].partition('\n## ')[0]
    config = load_config('cct_r50_camvid_50', {'method': 'cct-abce'})
    rows = re.findall(r'\| `([\w.]+)` \| `([^`]+)` \|$', section, re.MULTILINE)
    assert len(rows) > 12
    for key, value in rows:
        assert get_by_key(config, key) == ast.literal_eval(value), key
    decoders = config.model.auxiliary_head.perturbations.values()
    assert sum(p.num_decoders for p in decoders) == 30
