import re
from pathlib import Path
from types import SimpleNamespace

import mmengine.hub
import pytest
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE

import mmseg_cct
from mmseg_cct.config.compose import read_method
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import CONFIGS, composed_name, find_config, next_round
from mmseg_cct.errors import UserError

needs_installation = pytest.mark.skipif(
    CONFIGS.parent.name != '.mim', reason='mmengine finds configs of installed packages alone'
)


def scopes(config):
    return set(re.findall(r"'_scope_': '(\w+)'", str(config.to_dict())))


def test_bases_are_found_without_the_plugin_and_have_no_scope(tmp_path, monkeypatch):
    for package in ('mmseg_cct', 'mmseg'):
        monkeypatch.delitem(MODULE2PACKAGE, package)  # for `_base_ = 'mmseg_cct::...'`
    for name, expected in (
        ('mmseg_cct::demo/cct_shapes.py', 'CCTSegmentor'),
        ('mmseg::_base_/models/pspnet_r50-d8.py', 'EncoderDecoder'),
    ):
        own = tmp_path / f'{expected}.py'
        own.write_text(f"_base_ = __import__('mmseg_cct').bases({name!r})\n")
        config = Config.fromfile(own)
        assert config.model.type == expected and not scopes(config)
    with pytest.raises(ImportError, match='no package nothing; expected mmseg_cct:: or mmseg::'):
        mmseg_cct.bases('nothing::a.py')


def test_a_checkout_without_links_has_its_configs_too(tmp_path, monkeypatch):
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / 'mmseg_cct')])
    monkeypatch.setattr('importlib.util.find_spec', lambda name: spec)
    assert mmseg_cct.bases('mmseg_cct::a.py') == [str(tmp_path / 'configs' / 'a.py')]
    installed = tmp_path / 'mmseg_cct' / '.mim' / 'configs'
    installed.mkdir(parents=True)
    assert mmseg_cct.bases('mmseg_cct::a.py') == [str(installed / 'a.py')]


@needs_installation
def test_a_base_of_a_package_gives_what_its_file_gives(tmp_path):
    own = tmp_path / 'own.py'
    own.write_text("_base_ = 'mmseg_cct::demo/cct_shapes.py'\ntrain_cfg = dict(max_iters=7)\n")
    assert scopes(Config.fromfile(own)) == {'mmseg_cct'}  # which no builder knows
    expected = load_config('demo/cct_shapes', {})
    expected.train_cfg.max_iters = 7
    assert load_config(str(own), {}).to_dict() == expected.to_dict()
    bases = ['mmseg::_base_/models/pspnet_r50-d8.py', 'mmseg::_base_/datasets/cityscapes.py']
    own.write_text(f'_base_ = {bases}')
    config = load_config(str(own), {})
    assert config.model.decode_head.type == 'PSPHead' and scopes(config) == {'mmseg'}


@needs_installation
def test_a_method_may_build_on_a_shipped_one(tmp_path):
    (tmp_path / 'mine.py').write_text("_base_ = 'mmseg_cct::methods/supervised.py'\n")
    assert read_method(str(tmp_path / 'mine.py')) == read_method('supervised')


@needs_installation
def test_mmengine_hub_finds_the_configs(installed):
    listed = mmengine.hub.get_config('mmseg_cct::cct/cct_mbv2_camvid_50.py')
    assert listed.to_dict() == Config.fromfile(CONFIGS / 'cct/cct_mbv2_camvid_50.py').to_dict()
    assert mmengine.hub.get_config('mmseg_cct::cct/cct_r50_folder.py').model.type == 'CCTSegmentor'


def test_rounds_are_counted(tmp_path, monkeypatch):
    assert next_round(Path('a/cct_mine-round9.py')) == Path('a/cct_mine-round10.py')
    monkeypatch.chdir(tmp_path)
    assert next_round(Path('.')) == tmp_path.with_name(f'{tmp_path.name}-round2')


@pytest.mark.parametrize(
    ('stem', 'method', 'labels', 'name'),
    [
        ('cct_r50_voc_1464', None, 183, 'cct_r50_voc_183'),
        ('my_net', 'supervised', 5, 'supervised_my_net_5'),
        ('cct_r50_folder', 'own/fast.py', None, 'fast_r50_folder'),
    ],
)
def test_names_are_composed(stem, method, labels, name):
    assert composed_name(stem, method, labels) == name


SHORT = 'cct/cct_r50_folder'


def test_names_of_shipped_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (SHORT, f'configs/{SHORT}.py', f'mmseg_cct::{SHORT}.py', 'cct_r50_folder'):
        assert find_config(name) == str(CONFIGS / f'{SHORT}.py')
    (tmp_path / 'cct').mkdir()
    (tmp_path / f'{SHORT}.py').write_text('own = True\n')
    assert find_config(f'{SHORT}.py') == f'{SHORT}.py'  # one's own comes before it


def test_other_names_are_refused_with_the_nearest(tmp_path):
    with pytest.raises(UserError, match=r'did you mean cct/cct_r50_folder\.py'):
        find_config('cct/cct_r50_foldr')
    (tmp_path / 'cct-strong_mbv2_city.py').touch()
    with pytest.raises(UserError, match=r'did you mean .*/cct-strong_mbv2_city\.py\?'):
        find_config(f'{tmp_path}/cct_strong_mbv2_city.py')
