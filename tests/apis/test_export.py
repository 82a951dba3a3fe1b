import copy
import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.apis.export import TOLERANCE, AveragePool, InferenceGraph, export_onnx, metadata
from mmseg_cct.errors import UserError

SIZE = (40, 64)


@pytest.fixture(scope='module')
def model():
    torch.manual_seed(0)
    init_default_scope('mmseg')
    made = MODELS.build(tiny.model_config()).eval()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return made


def images(count=2, size=SIZE):
    return torch.randint(0, 256, (count, 3, *size), generator=torch.Generator().manual_seed(3))


def predict(model, rgb):
    """As MMSeg does: decoded BGR images through preprocessor and `predict`."""
    size = tuple(rgb.shape[2:])
    inputs = [image.flip(0).to(torch.uint8) for image in rgb]
    samples = [SegDataSample(metainfo=dict(ori_shape=size, img_shape=size)) for _ in rgb]
    with torch.no_grad():
        results = model.test_step(dict(inputs=inputs, data_samples=samples))
    return torch.stack([result.seg_logits.data for result in results])


def assert_predicts_as(model, session, rgb):
    (logits,) = session.run(None, {'images': rgb.numpy().astype(np.float32)})
    expected = predict(model, rgb).numpy()
    assert logits.shape == expected.shape == (len(rgb), 3, *rgb.shape[2:])
    assert np.abs(logits - expected).max() < 1e-4
    assert (logits.argmax(1) == expected.argmax(1)).mean() > 0.999


@pytest.mark.parametrize(('length', 'bins'), [(40, 6), (7, 3), (5, 2), (6, 6), (3, 6), (12, 4)])
def test_fixed_pooling_is_adaptive_pooling(length, bins):
    features = torch.randn(2, 3, length, 13)
    expected = nn.AdaptiveAvgPool2d(bins)(features)
    torch.testing.assert_close(AveragePool(bins)(features), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('takes_rgb', [True, False])
def test_the_graph_predicts_what_mmseg_predicts(model, takes_rgb):
    if not takes_rgb:
        torch.manual_seed(0)
        config = tiny.model_config()
        config['data_preprocessor'].update(bgr_to_rgb=False, mean=[1.0, 50.0, 200.0])
        model = MODELS.build(config).eval()
    rgb = images()
    actual = InferenceGraph(model)(rgb.float())
    torch.testing.assert_close(actual, predict(model, rgb), rtol=1e-4, atol=1e-5)
    assert actual.std() > 0.01
    assert any(isinstance(m, nn.AdaptiveAvgPool2d) for m in model.modules())


def test_the_arg_max_is_the_class_of_a_model_with_one_output_too():
    torch.manual_seed(0)
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config.decode_head.update(type='FCNHead', channels=4, num_classes=2, out_channels=1)
    binary = MODELS.build(config).eval()
    scores = predict(binary, images())[:, 0]
    binary.decode_head.threshold = scores.median().item()
    expected = scores > scores.median()
    logits = InferenceGraph(binary)(images().float())
    assert (logits.argmax(1) == expected).float().mean() > 0.999


def test_onnx_gives_the_same_for_any_number_of_images(model, tmp_path, runtime):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kinds = [type(module) for module in model.modules()]
    done = export_onnx(model, tmp_path / 'new' / 'model.onnx', SIZE)
    assert done.difference < 1e-5
    session = runtime.InferenceSession(str(done.file), providers=['CPUExecutionProvider'])
    (entry,) = session.get_inputs()
    assert (entry.name, entry.type, entry.shape) == ('images', 'tensor(float)', ['batch', 3, *SIZE])
    for count in (1, 3):
        assert_predicts_as(model, session, images(count))
    # the model is as it was
    assert [type(module) for module in model.modules()] == kinds
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.fixture
def runtime():
    return pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')


def with_tests_at(model, *steps, size=SIZE):
    """The model with a test pipeline, as `load_model` gives it."""
    pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=size[::-1]), *steps]
    made = copy.deepcopy(model)
    made.cfg = Config(dict(test_pipeline=[*pipeline, dict(type='PackSegInputs')]))
    return made


@pytest.mark.parametrize('divisor', [None, 16])
def test_without_a_size_a_file_takes_any_and_pads_as_mmseg_does(model, tmp_path, runtime, divisor):
    padded = with_tests_at(model)
    if divisor:
        padded.data_preprocessor.test_cfg = dict(size_divisor=divisor)
    done = export_onnx(padded, tmp_path / 'model.onnx')
    assert done.size is None and done.difference < 1e-5
    session = runtime.InferenceSession(str(done.file), providers=['CPUExecutionProvider'])
    for size in (SIZE, (33, 71), (96, 50)):
        assert_predicts_as(padded, session, images(2, size))


@pytest.mark.usefixtures('runtime')
def test_a_network_whose_graph_freezes_the_size_gets_that_of_the_tests(tmp_path):
    class Frozen(EncoderDecoder):
        def encode_decode(self, inputs, batch_img_metas):
            logits = super().encode_decode(inputs, batch_img_metas)
            return logits + torch.tensor(float(inputs.shape[2]))  # traced as a constant

    config = tiny.model_config(type=Frozen, auxiliary_head=None)
    frozen = with_tests_at(MODELS.build(config).eval(), size=(48, 32))
    done = export_onnx(frozen, tmp_path / 'model.onnx')
    assert done.size == (48, 32) and done.difference < 1e-5
    assert metadata(frozen, done.size)['size'] == (48, 32)


def test_the_way_of_an_image_is_noted_and_so_is_what_the_script_cannot_do(model):
    way = metadata(with_tests_at(model))['way']
    expected = dict(channels=None, value_range=None, scale=(64, 40), keep_ratio=False, cannot=[])
    assert way == expected
    way = metadata(with_tests_at(model), (24, 32), resize=True)['way']
    assert way['scale'] == (32, 24)
    sliding = with_tests_at(model, dict(type='CLAHE'))
    sliding.test_cfg = dict(mode='slide', crop_size=(32, 32), stride=(16, 16))
    sliding.align_corners = True
    sliding.cfg.test_pipeline[0] = dict(type='LoadChannels', channels=(3, 0), value_range=(0, 9))
    way = metadata(sliding)['way']
    assert (way['channels'], way['value_range']) == ((3, 0), (0, 9))
    assert way['cannot'] == [
        'test_pipeline: CLAHE',
        "model.test_cfg.mode: 'slide'",
        'model.decode_head.align_corners: True',
    ]


def test_a_size_is_asked_for_where_nothing_tells_it(model, tmp_path):
    model = with_tests_at(model)
    del model.cfg.test_pipeline[1]
    model.data_preprocessor.size = None
    with pytest.raises(UserError, match=r'--size: none, and the test pipeline resizes no images'):
        export_onnx(model, tmp_path / 'model.onnx')


@pytest.mark.usefixtures('runtime')
def test_a_file_for_other_channels_says_so(tmp_path):
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config.backbone = dict(type='MultiChannelBackbone', in_channels=4, backbone=config.backbone)
    config.data_preprocessor.update(mean=[0.0] * 4, std=[1.0] * 4, bgr_to_rgb=False)
    other, file = MODELS.build(config).eval(), tmp_path / 'four.onnx'
    assert export_onnx(other, file, SIZE).difference < 1e-5
    assert metadata(other)['input'].startswith('4 channels in the order of the config')


@pytest.mark.usefixtures('runtime')
def test_a_transformer_with_windows_takes_any_number_of_images(tmp_path):
    """Tracing one image would freeze the batch size of MMSeg's Swin, and mix up two."""
    torch.manual_seed(0)
    backbone = dict(type='SwinTransformer', embed_dims=8, depths=(2, 2), num_heads=(1, 2))
    backbone.update(window_size=4, strides=(4, 2), out_indices=(0, 1), pretrain_img_size=32)
    head = dict(type='FCNHead', in_channels=16, channels=4, num_convs=1, num_classes=3)
    config = tiny.model_config(type='EncoderDecoder', neck=None, auxiliary_head=None)
    config.backbone, config.decode_head = backbone, head  # without the arguments of others
    model = MODELS.build(config).eval()
    assert export_onnx(model, tmp_path / 'swin.onnx', SIZE).difference < TOLERANCE


def test_a_file_that_computes_something_else_is_noticed(model, tmp_path, runtime, monkeypatch):
    nothing = SimpleNamespace(run=lambda _, inputs: [np.zeros((2, 3, *SIZE), np.float32)])
    monkeypatch.setattr(runtime, 'InferenceSession', lambda *_, **__: nothing)
    assert export_onnx(model, tmp_path / 'model.onnx', SIZE).difference > TOLERANCE


def test_without_onnx_it_says_what_is_missing(model, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(UserError, match=r'--onnx: no package onnx; expected it: pip install'):
        export_onnx(model, tmp_path / 'model.onnx', SIZE)


def test_the_normalisation_is_noted_in_the_order_of_the_input():
    config = tiny.model_config()
    config.data_preprocessor.update(mean=[1.0, 50.0, 200.0])
    notes = metadata(MODELS.build(config))
    assert (notes['mean'], notes['std']) == ([1, 50, 200], [60, 60, 60])
