import ast
import re
import subprocess
import sys

import mmengine.hub
import pytest
from mmengine.config import Config

import mmseg_cct
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, commands, summary


def scopes(part):
    if isinstance(part, dict):
        yield from [part['_scope_']] if '_scope_' in part else []
        part = list(part.values())
    if isinstance(part, (list, tuple)):
        for value in part:
            yield from scopes(value)


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('mmseg_cct::demo/cct_shapes.py', 'CCTSegmentor'),
        ('mmseg::_base_/models/pspnet_r50-d8.py', 'EncoderDecoder'),
    ],
)
@pytest.mark.slow
def test_bases_are_found_without_the_plugin_and_have_no_scope(tmp_path, name, expected):
    own = tmp_path / 'own.py'
    own.write_text(f"_base_ = __import__('mmseg_cct').bases({name!r})\n")
    code = f'from mmengine.config import Config; print(Config.fromfile({str(own)!r}).model)'
    shown = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout
    assert f"'type': '{expected}'" in shown and '_scope_' not in shown
    with pytest.raises(ImportError, match='no package nothing; expected mmseg_cct:: or mmseg::'):
        mmseg_cct.bases('nothing::a.py')


def test_a_base_of_the_package_gives_what_the_file_gives(tmp_path):
    own = tmp_path / 'own.py'
    own.write_text("_base_ = 'mmseg_cct::demo/cct_shapes.py'\ntrain_cfg = dict(max_iters=7)\n")
    assert set(scopes(Config.fromfile(own)._cfg_dict)) == {'mmseg_cct'}  # which no builder knows
    expected = load_config('demo/cct_shapes', {})
    expected.train_cfg.max_iters = 7
    assert load_config(str(own), {}).to_dict() == expected.to_dict()


def test_a_base_of_mmsegmentation_loads(tmp_path):
    own = tmp_path / 'own.py'
    own.write_text(
        "_base_ = ['mmseg::_base_/models/pspnet_r50-d8.py', 'mmseg::_base_/datasets/cityscapes.py']"
    )
    config = load_config(str(own), {})
    assert config.model.decode_head.type == 'PSPHead'
    assert set(scopes(config._cfg_dict)) == {'mmseg'}


def test_mmengine_hub_finds_the_configs():
    listed = mmengine.hub.get_config('mmseg_cct::cct/cct_mbv2_camvid_50.py')
    assert listed.to_dict() == Config.fromfile(CONFIGS / 'cct/cct_mbv2_camvid_50.py').to_dict()
    assert mmengine.hub.get_config('mmseg_cct::cct/cct_r50_folder.py').model.type == 'CCTSegmentor'


def test_every_tool_is_a_command(project_root):
    tools = {path.name for path in (project_root / 'tools').glob('*.py')}
    assert {path.name for path in commands().values()} == tools
    assert {'train', 'test', 'predict', 'make-pseudo-labels'} <= set(commands())
    for script in commands().values():
        assert summary(script).endswith('.'), script


@pytest.mark.parametrize('script', commands().values(), ids=lambda script: script.stem)
def test_examples_of_the_help_keep_their_lines(script):
    doc = ast.get_docstring(ast.parse(script.read_text()))
    assert not re.search(r'\S {5,}\S', doc), f'{script}: a line that ends with one backslash'
