import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.errors import UserError
from mmseg_cct.interop.export import (
    TOLERANCE,
    FixedAveragePool,
    InferenceGraph,
    export_onnx,
    metadata,
)

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


def images(count=2):
    return torch.randint(0, 256, (count, 3, *SIZE), generator=torch.Generator().manual_seed(3))


def predict(model, rgb):
    """As MMSeg does: decoded BGR images through preprocessor and `predict`."""
    with torch.no_grad():
        results = model.test_step(
            dict(
                inputs=[image.flip(0).to(torch.uint8) for image in rgb],
                data_samples=[sample() for _ in rgb],
            )
        )
    return torch.stack([result.seg_logits.data for result in results])


def sample():
    return SegDataSample(metainfo=dict(ori_shape=SIZE, img_shape=SIZE))


@pytest.mark.parametrize(('length', 'bins'), [(40, 6), (7, 3), (5, 2), (6, 6), (3, 6), (12, 4)])
def test_fixed_pooling_is_adaptive_pooling(length, bins):
    features = torch.randn(2, 3, length, 13)
    torch.testing.assert_close(
        FixedAveragePool((length, 13), bins)(features),
        nn.AdaptiveAvgPool2d(bins)(features),
        rtol=1e-5,
        atol=1e-6,
    )


def test_the_graph_predicts_what_mmseg_predicts(model):
    graph = InferenceGraph(model, SIZE)
    rgb = images()
    actual = graph(rgb.float())
    torch.testing.assert_close(actual, predict(model, rgb), rtol=1e-4, atol=1e-5)
    assert actual.std() > 0.01
    assert any(isinstance(m, nn.AdaptiveAvgPool2d) for m in model.modules())


def test_a_network_that_takes_bgr_gets_it(model):
    torch.manual_seed(0)
    config = tiny.model_config()
    config['data_preprocessor'].update(bgr_to_rgb=False, mean=[1.0, 50.0, 200.0])
    other = MODELS.build(config).eval()
    torch.testing.assert_close(
        InferenceGraph(other, SIZE)(images().float()),
        predict(other, images()),
        rtol=1e-4,
        atol=1e-5,
    )


def test_the_arg_max_is_the_class_of_a_model_with_one_output_too():
    torch.manual_seed(0)
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config.decode_head.update(type='FCNHead', channels=4, num_classes=2, out_channels=1)
    binary = MODELS.build(config).eval()
    scores = predict(binary, images())[:, 0]
    binary.decode_head.threshold = scores.median().item()
    expected = scores > scores.median()
    logits = InferenceGraph(binary, SIZE)(images().float())
    assert (logits.argmax(1) == expected).float().mean() > 0.999


def test_onnx_gives_the_same_for_any_number_of_images(model, tmp_path):
    runtime = pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    done = export_onnx(model, SIZE, tmp_path / 'new' / 'model.onnx')
    assert done.difference < 1e-5
    session = runtime.InferenceSession(str(done.file), providers=['CPUExecutionProvider'])
    (entry,) = session.get_inputs()
    assert (entry.name, entry.type, entry.shape) == ('images', 'tensor(float)', ['batch', 3, *SIZE])
    for count in (1, 3):
        (logits,) = session.run(None, {'images': images(count).numpy().astype(np.float32)})
        expected = predict(model, images(count)).numpy()
        assert logits.shape == expected.shape
        assert np.abs(logits - expected).max() < 1e-4
        assert (logits.argmax(1) == expected.argmax(1)).mean() > 0.999


def test_a_file_for_other_channels_says_so_and_the_script_for_rgb_refuses_it(
    tmp_path, project_root
):
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config.backbone = dict(type='MultiChannelBackbone', in_channels=4, backbone=config.backbone)
    config.data_preprocessor.update(mean=[0.0] * 4, std=[1.0] * 4, bgr_to_rgb=False)
    other, file = MODELS.build(config).eval(), tmp_path / 'four.onnx'
    assert export_onnx(other, SIZE, file).difference < 1e-5
    assert metadata(other, SIZE)['input'].startswith('4 channels in the order of the config')
    script = project_root / 'tools/predict_onnx.py'
    done = subprocess.run(
        [sys.executable, script, file, file, '--out', tmp_path / 'out'],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f'{file}: takes 4 channels; expected 3')


def test_a_transformer_with_windows_takes_any_number_of_images(tmp_path):
    """Tracing one image would freeze the batch size of MMSeg's Swin, and mix up two."""
    pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    torch.manual_seed(0)
    backbone = dict(type='SwinTransformer', embed_dims=8, depths=(2, 2), num_heads=(1, 2))
    backbone.update(window_size=4, strides=(4, 2), out_indices=(0, 1), pretrain_img_size=32)
    head = dict(type='FCNHead', in_channels=16, channels=4, num_convs=1, num_classes=3)
    config = tiny.model_config(type='EncoderDecoder', backbone=backbone, decode_head=head)
    for name in ('neck', 'auxiliary_head'):
        config.pop(name)
    config.backbone = backbone  # without the arguments of a ResNet
    model = MODELS.build(config).eval()
    assert export_onnx(model, SIZE, tmp_path / 'swin.onnx').difference < TOLERANCE


def test_export_leaves_the_model_as_it_was(model, tmp_path):
    pytest.importorskip('onnx', reason='writes the file')
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kinds = [type(module) for module in model.modules()]
    export_onnx(model, SIZE, tmp_path / 'model.onnx')
    assert [type(module) for module in model.modules()] == kinds
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_file_that_computes_something_else_is_noticed(model, tmp_path, monkeypatch):
    runtime = pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')
    nothing = SimpleNamespace(run=lambda _, inputs: [np.zeros((2, 3, *SIZE), np.float32)])
    monkeypatch.setattr(runtime, 'InferenceSession', lambda *_, **__: nothing)
    assert export_onnx(model, SIZE, tmp_path / 'model.onnx').difference > TOLERANCE


def test_without_onnx_it_says_what_is_missing(model, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(UserError, match=r'--onnx: no package onnx; expected it: pip install'):
        export_onnx(model, SIZE, tmp_path / 'model.onnx')


@pytest.mark.parametrize('size', [(40, 63), (0, 64), (4, 64)])
def test_sizes_that_do_not_fit_are_refused(model, size):
    with pytest.raises(UserError, match=r'--size .*: expected multiples of 8'):
        InferenceGraph(model, size)


def test_a_size_that_a_test_would_pad_is_refused():
    config = tiny.model_config()
    config.data_preprocessor.test_cfg.size_divisor = 32
    with pytest.raises(UserError, match=r'--size 40 64: expected multiples of 32'):
        InferenceGraph(MODELS.build(config).eval(), SIZE)


def test_the_normalisation_is_noted_in_the_order_of_the_input():
    config = tiny.model_config()
    config.data_preprocessor.update(mean=[1.0, 50.0, 200.0])
    notes = metadata(MODELS.build(config), SIZE)
    assert (notes['mean'], notes['std']) == ([1, 50, 200], [60, 60, 60])
