import pytest
from mmengine.config import Config

from mmseg_cct.config.load import load_config
from mmseg_cct.config.text import read_config_text
from mmseg_cct.engine.foreign_config import (
    require_no_code,
    require_usable_config,
    saved_config,
)
from mmseg_cct.errors import UserError


@pytest.mark.parametrize(
    'name', ['demo/cct_shapes', 'cct/cct_mbv2_camvid_50', 'multi_domain/cct_mbv2-jpu_camvid-idd_20']
)
def test_what_mmengine_dumps_of_a_shipped_config_reads_as_it_runs_and_has_no_code(name):
    text = load_config(name, {}).pretty_text
    read = read_config_text(text, 'x')
    assert read.to_dict() == Config.fromstring(text, '.py').to_dict()
    require_no_code(read, 'x')


def test_the_config_of_a_checkpoint_is_read_and_not_run(tmp_path):
    for content in ({}, dict(meta=None), dict(meta=dict(cfg=None))):
        assert saved_config(content, 'x.pth') is None
    trained = dict(meta=dict(cfg="lr = 0.1\nmodel = dict(type='A')\n"))
    assert saved_config(trained, 'x.pth').to_dict() == dict(lr=0.1, model=dict(type='A'))
    foreign = dict(meta=dict(cfg=f"open({str(tmp_path / 'x')!r}, 'w')"))
    with pytest.raises(UserError, match=r'^x\.pth: its config is not a list of plain settings'):
        saved_config(foreign, 'x.pth')
    assert not list(tmp_path.iterdir())


CONFIG = dict(
    model=dict(type='EncoderDecoder'),
    test_dataloader=dict(dataset=dict(pipeline=dict(a=[dict(type='Resize')]))),
    test_pipeline=[dict(type='Resize', scale=3)],
    custom_imports=dict(imports=['a']),
)


@pytest.mark.parametrize(
    ('change', 'expected'),
    [
        (dict(model=[1]), r'model=\[1\]: expected a dict, or None'),
        (dict(model={}), "model: no type; expected a model's settings"),
        (dict(test_dataloader=[]), r'test_dataloader=\[\]: expected a dict'),
        (dict(custom_imports='a'), "custom_imports='a': expected a dict"),
        (dict(custom_imports=dict(imports=[[]])), r'custom_imports.imports=\[\[\]\]: expected'),
        (dict(test_pipeline=['Resize']), r"test_pipeline=\['Resize'\]: expected a list of dicts"),
        (dict(tta_pipeline=[dict(scale=3)]), r"tta_pipeline=\[{'scale': 3}\]: expected a list"),
        (dict(tta_pipeline=dict(a=3)), "tta_pipeline={'a': 3}: expected a list of dicts with a t"),
    ],
)
def test_a_part_of_its_config_is_named(change, expected):
    require_usable_config(CONFIG, 'x.pth')
    with pytest.raises(UserError, match=f'^x.pth: its config: {expected}'):
        require_usable_config({**CONFIG, **change}, 'x.pth')


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
