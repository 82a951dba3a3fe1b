import pytest
from mmengine.config import Config

from mmseg_cct.config.load import load_config
from mmseg_cct.engine.foreign_config import require_names_without_code
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    'kind',
    [
        'subprocess.Popen',
        'mmengine.put_text',  # is there, and not registered
        'mmseg.apis.init_model',
        'json',  # a module
        'no_such_package.X',
        '../x',
        '',
        5,
        'mmpretrain.torchvision/ConvertImageDtype',  # whose dtype is evaluated
    ],
)
def test_a_type_that_is_not_registered_is_refused(kind):
    config = Config(dict(model=dict(decode_head=[dict(loss=dict(type=kind))])))
    with pytest.raises(UserError, match=r'x: its config has model\.decode_head\.0\.loss\.type='):
        require_names_without_code(config, 'x')


@pytest.mark.parametrize('name', ['default_scope', 'model._scope_'])
@pytest.mark.parametrize('scope', ['os', 'mmseg.models', 5])
def test_an_unknown_scope_is_refused(name, scope):
    with pytest.raises(UserError, match=rf'x: its config has {name}='):
        require_names_without_code(Config({name: scope}), 'x')


@pytest.mark.parametrize(
    'kind', ['FCNHead', 'mmseg.FCNHead', 'mmengine.SGD', 'SyncBN', 'CCTSegmentor', 'MyNet', None]
)
def test_registered_names_and_those_that_nothing_finds_pass(kind):
    require_names_without_code(Config(dict(default_scope='mmseg', model=dict(type=kind))), 'x')


@pytest.mark.parametrize('name', ['demo/cct_shapes', 'cct/cct_r50_voc_1464'])
def test_shipped_configs_pass(name):
    require_names_without_code(load_config(name, {}), 'x')
