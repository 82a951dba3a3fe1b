"""The file of a setting, found by path and by name, and the files that it builds on."""

import pytest

from mmseg_cct.config.config_file import find_config, require_bases
from mmseg_cct.config.shipped import CONFIGS
from mmseg_cct.errors import UserError

SHORT = 'cct/cct_r50_folder'


@pytest.mark.parametrize(
    'name',
    [SHORT, f'{SHORT}.py', f'configs/{SHORT}.py', f'mmseg_cct::{SHORT}.py', 'cct_r50_folder'],
)
def test_names_of_shipped_settings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_config(name) == str(CONFIGS / f'{SHORT}.py')
    (tmp_path / 'cct').mkdir()
    (tmp_path / f'{SHORT}.py').write_text('own = True\n')
    assert find_config(f'{SHORT}.py') == f'{SHORT}.py'  # one's own comes before it


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('cct/cct_r50_foldr', r'no such config file; did you mean cct/cct_r50_folder\.py'),
        ('nothing.py', 'no such config file$'),
    ],
)
def test_other_names_are_refused_with_the_nearest(name, message):
    with pytest.raises(UserError, match=f'^{name}: {message}'):
        find_config(name)


def test_files_that_a_config_builds_on_are_there(tmp_path):
    (tmp_path / 'base.py').write_text("_base_ = ['deeper/a.py', 'mmseg::_base_/models/fcn.py']")
    own = tmp_path / 'own.py'
    own.write_text("_base_ = './base.py'\n")
    with pytest.raises(UserError, match=r'base\.py: _base_: no file .*deeper/a\.py; expected'):
        require_bases(own)
    (tmp_path / 'deeper').mkdir()
    (tmp_path / 'deeper/a.py').write_text("_base_ = __import__('mmseg_cct').bases('x')\n")
    require_bases(own)
    for text in ("_base_ = '", '_base_ = 5', f'x = {"-" * 9999}1'):  # mmengine says so
        own.write_text(text)
        require_bases(own)


def test_a_circle_of_configs_ends(tmp_path):
    (tmp_path / 'a.py').write_text("_base_ = 'b.py'")
    (tmp_path / 'b.py').write_text("_base_ = ['b2.py', './a.py']")
    (tmp_path / 'b2.py').touch()
    with pytest.raises(UserError, match=r'b\.py: _base_: .*a\.py builds on this config'):
        require_bases(tmp_path / 'a.py')
