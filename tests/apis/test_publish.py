"""What is published, and what the published file is for."""

import hashlib
import re
from functools import partial
from pathlib import Path

import any_heads
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmseg.apis import MMSegInferencer
from mmseg.registry import MODELS

from mmseg_cct.apis.publish import publish
from mmseg_cct.apis.run import Run
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import method_names
from mmseg_cct.errors import UserError


@pytest.fixture
def published(trained, tmp_path):
    return Path(publish(Run.open(trained.work_dir), str(tmp_path / 'out' / 'cct.pth')).checkpoint)


def test_only_what_inference_needs_is_left(trained, published):
    before = torch.load(str(trained.checkpoint), weights_only=False)
    assert {'optimizer', 'param_schedulers', 'message_hub'} <= before.keys()
    after = torch.load(published, weights_only=False)
    assert after.keys() == {'meta', 'state_dict'}
    kept = [name for name in before['state_dict'] if not name.startswith('auxiliary_head.')]
    assert list(after['state_dict']) == kept and len(kept) < len(before['state_dict'])
    assert all(torch.equal(after['state_dict'][n], before['state_dict'][n]) for n in kept)
    assert after['meta']['dataset_meta']['classes'] == ('ground', 'thing', 'other')
    config = Config.fromstring(after['meta']['cfg'], '.py')
    assert config.model.type == 'EncoderDecoder' and config.model.auxiliary_head is None
    kept = {'default_scope', 'custom_imports', 'model', 'visualizer', 'test_dataloader'}
    assert config.keys() == kept | {'test_pipeline', 'tta_model', 'tta_pipeline'}
    data = published.read_bytes()
    assert len(data) < trained.checkpoint.stat().st_size / 2
    # no folder of the training machine
    assert str(trained.folder).encode() in trained.checkpoint.read_bytes()
    assert str(trained.folder).encode() not in data and b'experiment' not in data


def published_from(config, tmp_path, domain=None):
    """The segmentor of a config with its initial weights, and what its published file builds."""
    config.model.backbone.init_cfg = None
    trained = MODELS.build(config.model).eval()
    state = {f'module.{name}': value for name, value in trained.state_dict().items()}
    torch.save(state, tmp_path / 'in.pth')  # as DDP names them, and without meta
    run = Run(config, str(tmp_path / 'in.pth'), '').of_domain(domain)
    run = publish(run, str(tmp_path / 'out.pth'))
    content = torch.load(run.checkpoint, weights_only=False)
    settings = Config.fromstring(content['meta']['cfg'], '.py')
    cascade = isinstance(config.model.decode_head, list)
    assert settings.model.type == ('CascadeEncoderDecoder' if cascade else 'EncoderDecoder')
    assert settings.model.auxiliary_head is None
    model = MODELS.build(settings.model).eval()
    model.load_state_dict(content['state_dict'])  # strict
    images = torch.rand(1, 3, 64, 128, generator=torch.Generator().manual_seed(0))
    metas = [dict(img_shape=images.shape[-2:])]
    with torch.no_grad():
        expected = (trained.domains[domain] if domain else trained).encode_decode(images, metas)
        assert torch.equal(model.encode_decode(images, metas), expected)
    return model, settings


@pytest.mark.parametrize(
    ('setting', 'method'),
    [
        ('cct/cct_deeplabv3plus-mbv2_idd-lite_20', 'cct'),
        # cct-adv is for several domains, see below
        *[('demo/cct_shapes', name) for name in method_names() if name != 'cct-adv'],
    ],
)
def test_every_method_is_published_as_an_encoder_decoder(tmp_path, setting, method):
    _, settings = published_from(load_config(setting, dict(method=method)), tmp_path)
    loads = [settings.test_pipeline[0].type, settings.test_dataloader.dataset.pipeline[0].type]
    assert loads == ['LoadImageFromFile'] * 2  # what MMSegInferencer looks for
    assert not {'loss_strong', 'cutmix', 'loss_consistency'} & settings.model.keys()


@any_heads.each_head
def test_any_main_decoder_is_published_as_mmseg_has_it(tmp_path, name):
    config = load_config('demo/cct_shapes', dict(method='fixmatch'))
    config.model.neck = config.model.decode_head = config.model.backbone = None
    config.model.update(
        any_heads.settings(name, 'FixMatchSegmentor', loss_strong=config.model.loss_strong)
    )
    published_from(config, tmp_path)


def test_a_domain_is_published_as_an_encoder_decoder(tmp_path):
    config = load_config('cct_mbv2-jpu_camvid-idd_20', {})
    model, settings = published_from(config, tmp_path, 'idd')
    assert settings.test_pipeline == config.test_dataloader.dataset.domains.idd.pipeline
    assert settings.tta_pipeline == config.tta_pipeline.idd
    assert model.num_classes == 7


def test_the_name_holds_the_hash_and_another_file_of_it_is_kept_unless_told(trained, published):
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    # what torch.hub looks for in a file's name
    assert re.search(r'-([a-f0-9]*)\.', published.name)[1] == digest[:8]
    again = partial(publish, Run.open(trained.work_dir), str(published.parent / 'cct.pth'))
    assert again().checkpoint == str(published)  # the same bytes
    data = published.read_bytes()
    published.write_text('mine')
    with pytest.raises(UserError) as error:
        again()
    assert published.name in str(error.value.problems[0].key)
    assert again(overwrite=True).checkpoint == str(published) and published.read_bytes() == data


def test_half_of_the_bytes_predict_nearly_the_same(trained, published, tmp_path):
    half = publish(Run.open(trained.work_dir), str(tmp_path / 'half.pth'), half=True)
    before, after = (
        torch.load(file, weights_only=False)['state_dict'] for file in (published, half.checkpoint)
    )
    for name, value in before.items():
        assert after[name].dtype == (torch.float16 if value.dim() > 1 else value.dtype)
        torch.testing.assert_close(after[name].to(value.dtype), value, rtol=1e-3, atol=1e-7)
    model = half.load_model('cpu')
    assert all(value.dtype == torch.float32 for value in model.parameters())


def test_the_inferencer_predicts_the_same_without_a_config_and_without_complaints(
    trained, published, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(1).integers(0, 256, (48, 40, 3), np.uint8)
    predictions = []
    for files in ((str(trained.file), str(trained.checkpoint)), (None, str(published))):
        capfd.readouterr()
        inferencer = MMSegInferencer(*files, device='cpu', show_progress=False)
        predictions.append(inferencer(image, return_datasamples=True).seg_logits.data)
    assert torch.equal(*predictions)
    assert inferencer.model.dataset_meta['classes'] == ('ground', 'thing', 'other')
    out = ''.join(capfd.readouterr())
    for complaint in ('do not match', 'missing keys', 'unexpected key', 'not safely'):
        assert complaint not in out
