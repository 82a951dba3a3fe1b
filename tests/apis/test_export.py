import importlib.util
import json

import numpy as np
import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.models import EncoderDecoder
from mmseg.models.decode_heads import MaskFormerHead
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import nn

from mmseg_cct.apis.export import AveragePool, InferenceGraph, export_onnx
from mmseg_cct.errors import UserError

SIZE = (40, 64)


@pytest.fixture
def model():
    torch.manual_seed(0)
    init_default_scope('mmseg')
    made = MODELS.build(tiny.model_config()).eval()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return loaded(made)


def loaded(model):
    """As `Run.load_model` gives it."""
    model.cfg = Config(dict(test_pipeline=[dict(type='LoadImageFromFile')]))
    model.dataset_meta = dict(classes=('a', 'b', 'c'), palette=[[1, 2, 3]] * 3)
    return model.eval()


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


@pytest.mark.parametrize(('length', 'bins'), [(40, 6), (7, 3), (3, 6)])
def test_fixed_pooling_is_adaptive_pooling(length, bins):
    features = torch.randn(2, 3, length, 13)
    expected = nn.AdaptiveAvgPool2d(bins)(features)
    torch.testing.assert_close(AveragePool(bins)(features), expected, rtol=1e-5, atol=1e-6)


def test_the_graph_of_a_network_that_takes_bgr_predicts_what_mmseg_predicts():
    torch.manual_seed(0)
    config = tiny.model_config()
    config['data_preprocessor'].update(bgr_to_rgb=False, mean=[1.0, 50.0, 200.0])
    model, rgb = MODELS.build(config).eval(), images()
    actual = InferenceGraph(model)(rgb.float())
    torch.testing.assert_close(actual, predict(model, rgb), rtol=1e-4, atol=1e-5)
    assert actual.std() > 0.01
    assert any(isinstance(m, nn.AdaptiveAvgPool2d) for m in model.modules())


@pytest.fixture
def runtime():
    return pytest.importorskip('onnxruntime', reason='export is checked with onnxruntime')


def test_a_file_takes_any_images_and_pads_as_mmseg_does(model, tmp_path, runtime):
    model.data_preprocessor.test_cfg = dict(size_divisor=16)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kinds = [type(module) for module in model.modules()]
    file = tmp_path / 'new' / 'model.onnx'
    assert export_onnx(model, file) < 1e-5
    session = runtime.InferenceSession(str(file), providers=['CPUExecutionProvider'])
    notes = session.get_modelmeta().custom_metadata_map
    assert json.loads(notes['classes']) == ['a', 'b', 'c']
    assert json.loads(notes['test_pipeline']) == [dict(type='LoadImageFromFile')]
    for count, size in ((1, SIZE), (3, (33, 71))):
        assert_predicts_as(model, session, images(count, size))
    # the model is as it was
    assert [type(module) for module in model.modules()] == kinds
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.usefixtures('runtime')
def test_a_network_whose_graph_freezes_the_size_needs_one(tmp_path):
    class Frozen(EncoderDecoder):
        def encode_decode(self, inputs, batch_img_metas):
            logits = super().encode_decode(inputs, batch_img_metas)
            return logits + torch.tensor(float(inputs.shape[2]))  # traced as a constant

    frozen = loaded(MODELS.build(tiny.model_config(type=Frozen, auxiliary_head=None)))
    with pytest.raises(UserError) as error:
        export_onnx(frozen, tmp_path / 'model.onnx')
    assert error.value.problems[0].key == '--onnx'
    assert not list(tmp_path.iterdir())
    assert export_onnx(frozen, tmp_path / 'model.onnx', (48, 32)) < 1e-5


@pytest.mark.usefixtures('runtime')
def test_an_operator_that_the_tracer_lacks_is_exported(tmp_path):
    pytest.importorskip('onnxscript')

    class Antialiased(EncoderDecoder):
        def encode_decode(self, inputs, batch_img_metas):
            half = inputs[..., ::2, ::2]  # no network: the newer exporter takes its time
            return F.interpolate(half, inputs.shape[2:], mode='bilinear', antialias=True)

    model = loaded(MODELS.build(tiny.model_config(type=Antialiased, auxiliary_head=None)))
    assert export_onnx(model, tmp_path / 'model.onnx') < 1e-5


@pytest.mark.parametrize('lacking', ['package', 'outputs', 'graph'])
def test_what_cannot_be_exported_is_named(model, tmp_path, monkeypatch, lacking):
    if lacking == 'package':
        monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    elif lacking == 'outputs':
        config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
        config.decode_head.update(type='FCNHead', channels=4, num_classes=2, out_channels=1)
        model = loaded(MODELS.build(config))
    else:
        model.decode_head = object.__new__(MaskFormerHead)
        nn.Module.__init__(model.decode_head)
    with pytest.raises(UserError) as error:
        export_onnx(model, tmp_path / 'model.onnx', SIZE)
    assert error.value.problems[0].key == '--onnx'
