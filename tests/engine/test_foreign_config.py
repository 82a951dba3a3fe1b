import pytest
from mmengine.config import Config

from mmseg_cct.config.load import load_config
from mmseg_cct.engine.foreign_config import require_no_code
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    'kind',
    [
        'subprocess.Popen',
        'mmengine.put_text',  # is there, and not registered
        'mmseg.apis.init_model',
        'json',  # a module
        'no_such_package.X',
        'mmseg.DSDLDataset',
        '../x',
        '',
        5,
        'mmpretrain.torchvision/ConvertImageDtype',  # whose dtype is evaluated
    ],
)
def test_a_type_that_is_not_registered_is_refused(kind):
    config = Config(dict(model=dict(decode_head=[dict(loss=dict(type=kind))])))
    with pytest.raises(UserError, match=r'x: its config has model\.decode_head\.0\.loss\.type='):
        require_no_code(config, 'x')


@pytest.mark.parametrize('name', ['default_scope', 'model._scope_'])
@pytest.mark.parametrize('scope', ['os', 'mmseg.models', 5])
def test_an_unknown_scope_is_refused(name, scope):
    with pytest.raises(UserError, match=rf'x: its config has {name}='):
        require_no_code(Config({name: scope}), 'x')


@pytest.mark.parametrize(
    'kind', ['FCNHead', 'mmseg.FCNHead', 'mmengine.SGD', 'SyncBN', 'CCTSegmentor', 'MyNet', None]
)
def test_registered_names_and_those_that_nothing_finds_pass(kind):
    require_no_code(Config(dict(default_scope='mmseg', model=dict(type=kind))), 'x')


@pytest.mark.parametrize('name', ['demo/cct_shapes', 'cct/cct_r50_voc_1464'])
def test_shipped_configs_pass(name):
    require_no_code(load_config(name, {}), 'x')


BUILT = 'test_dataloader.dataset', 'model.decode_head.loss_decode', 'tta_pipeline.0'


@pytest.mark.parametrize(
    'argument',
    [
        dict(class_weight='x.pkl'),
        dict(class_weight='pkl'),  # mmengine takes what follows the last dot
        dict(ann_file='../x.yaml'),
        dict(files=['a.txt', 'x.pickle']),
        dict(decode_backend='pickle'),
        dict(class_weight='http://example.invalid/x.json'),
        dict(data_prefix=dict(img_path=' x:http://example.invalid')),  # mmengine splits at ://
        dict(model_name='hf-hub:someone/net'),
        dict(model_name='local-dir:/tmp/net'),
        dict(backend_args='memcached'),
        dict(checkpoint_path='x.pth'),
        dict(backend_args=dict(backend='memcached', sys_path='evil')),
        dict(file_client_args=dict(backend='disk', prefix='s3')),
        dict(backend_args=dict(backend='local', sys_path='evil')),
    ],
)
def test_an_argument_that_loads_code_is_refused(argument):
    for place in BUILT:
        part = dict(argument)
        for name in reversed(place.split('.')):
            part = {name: part}
        with pytest.raises(UserError, match=rf'x: its config has {place}\.'):
            require_no_code(Config(part), 'x')


def test_arguments_that_are_data_pass():
    part = dict(
        class_weight='weights.json', ann_file='voc/train.txt', backend_args=dict(backend='local'),
        init_cfg=dict(type='Pretrained', checkpoint='https://example.invalid/x.pth'),
        pretrained='open-mmlab://resnet50_v1c', classes=['pickle', 'hand: left', 'a:b', 'yaml'],
        file_client_args=None,
    )  # fmt: skip
    others = dict(load_from='https://example.invalid/x.pth', paper='https://example.invalid')
    require_no_code(Config(dict(model=part, test_dataloader=dict(dataset=part), **others)), 'x')


@pytest.mark.parametrize('kind', ['MultiLabelDataset', 'HuggingFaceClassifier', 'CIFAR10'])
def test_another_package_gives_parts_of_networks_alone(kind):
    pytest.importorskip('mmpretrain', reason='its components (extra `weak`)')
    require_no_code(Config(dict(model=dict(type='mmpretrain.ConvNeXt'))), 'x')
    with pytest.raises(UserError, match=f"type='mmpretrain.{kind}'"):
        require_no_code(Config(dict(model=dict(type=f'mmpretrain.{kind}'))), 'x')
