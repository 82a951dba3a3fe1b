"""The pages on configs: symbols, methods and named hooks are on them."""

import ast
import re

from mmseg_cct.config.compose import method_names
from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import get_by_key


def rows(text):
    """The cells of each row of the tables in a text, without the two rows of a head."""
    lines = [line for line in text.splitlines() if line.startswith('|')]
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return [row for row in cells if row[0] not in ('method', 'symbol', '---')]


def test_the_papers_symbols_are_where_the_page_says(project_root):
    page = (project_root / 'docs' / 'configuration.md').read_text(encoding='utf-8')
    config = load_config('cct_r50_camvid_50', {'method': 'cct-abce'})
    table = rows(page.partition("## The paper's symbols")[2].partition('\n## ')[0])
    assert len(table) > 15
    for _, _, key, value in table:
        found = get_by_key(config, key.strip('`'))
        assert found is not None, key
        if value.startswith('`'):
            assert found == ast.literal_eval(value.strip('`')), key
    decoders = config.model.auxiliary_head.perturbations.values()
    assert sum(p.num_decoders for p in decoders) == 30


def test_the_page_on_runs_lists_the_methods_and_the_named_hooks(project_root):
    page = (project_root / 'docs' / 'methods.md').read_text(encoding='utf-8')
    methods = page.partition('\n| method |')[2].partition('\n\n')[0]
    named = [name for row in rows(methods) for name in re.findall('`([^`]+)`', row[0])]
    assert sorted(named) == sorted(method_names())

    hooks = page.partition('\n| name in')[2].partition('\n\n')[0]
    named = {name for row in rows(hooks) for name in re.findall('`([^`]+)`', row[0])}
    runs = {'cct_r50_voc_1464': 'cct-strong', 'cct_mbv2-jpu_idd-lite_20': 'cct-abce'}
    present = [load_config(name, {'method': m}).default_hooks.keys() for name, m in runs.items()]
    assert named - {'default_hooks'} <= set().union(*present)
