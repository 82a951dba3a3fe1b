import hashlib
import re
import warnings
from functools import partial

import numpy as np
import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.runner import load_checkpoint
from mmengine.runner.checkpoint import load_state_dict
from mmseg.apis import MMSegInferencer
from mmseg.registry import MODELS

from mmseg_cct.apis.convert import SHARED_NAMES
from mmseg_cct.apis.publish import publish_checkpoint
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import method_names
from mmseg_cct.errors import UserError


@pytest.fixture
def published(trained, tmp_path):
    return publish_checkpoint(str(trained.checkpoint), str(tmp_path / 'out' / 'cct.pth'))


def publish_content(root, content, *options):
    torch.save(content, root / 'in.pth')
    return publish_checkpoint(str(root / 'in.pth'), str(root / 'out.pth'), *options)


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


@pytest.mark.parametrize(
    ('domain', 'name', 'kept'),
    [
        (None, 'decode_head.proj.weight', ['decode_head.proj.weight']),
        ('sea', 'domains.sea.decode_head.proj.weight', ['decode_head.proj.weight']),
        ('sea', 'domains.land.decode_head.proj.weight', []),
        ('sea', 'domains.sea.auxiliary_head.proj', []),
        ('sea', 'discriminator.convs.0.weight', []),
    ],
)
def test_other_domains_and_what_trains_are_stripped(tmp_path, domain, name, kept):
    names = ['backbone.conv1.weight', name, *(['domains.sea.decode_head.bias'] if domain else [])]
    content = dict(meta={}, state_dict=dict.fromkeys(names, torch.ones(1)))
    expected = {names[0], *kept, *(['decode_head.bias'] if domain else [])}
    file = publish_content(tmp_path, content, None, domain)
    assert torch.load(file)['state_dict'].keys() == expected


@pytest.mark.parametrize(
    ('names', 'domain', 'message'),
    [
        (['land', 'sea'], None, '--domain is missing: expected one of land, sea'),
        (['land', 'sea'], 'air', '--domain air: expected one of land, sea'),
        ([], 'sea', '--domain sea: expected none, the model has no domains'),
    ],
)
def test_a_domain_is_named_where_there_are_several(tmp_path, names, domain, message):
    names = ['backbone.bias', *(f'domains.{name}.decode_head.bias' for name in names)]
    content = dict(state_dict=dict.fromkeys(names, torch.ones(1)))
    with pytest.raises(UserError, match=f'in.pth: {message}$'):
        publish_content(tmp_path, content, None, domain)


def test_a_config_without_the_domain_is_an_error(trained, tmp_path):
    names = 'backbone.bias', 'domains.sea.decode_head.bias'
    content = dict(state_dict=dict.fromkeys(names, torch.ones(1)))
    with pytest.raises(UserError, match=r'^--domain sea: .*tiny\.py has no domains; expected'):
        publish_content(tmp_path, content, Config.fromfile(str(trained.file)), 'sea')


def published_from(config, tmp_path, domain=None):
    """The segmentor of a config with its initial weights, and what its published file builds."""
    config.model.backbone.init_cfg = None
    trained = MODELS.build(config.model).eval()
    content = dict(meta=dict(cfg=config.pretty_text), state_dict=trained.state_dict())
    content = torch.load(publish_content(tmp_path, content, None, domain), weights_only=False)
    settings = Config.fromstring(content['meta']['cfg'], '.py')
    assert settings.model.type == 'EncoderDecoder' and settings.model.auxiliary_head is None
    model = MODELS.build(settings.model).eval()
    model.load_state_dict(content['state_dict'])  # strict
    images = torch.rand(1, 3, 32, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = (trained.domains[domain] if domain else trained)(images)
        assert torch.equal(model(images), expected)
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


def test_a_domain_is_published_as_an_encoder_decoder(tmp_path):
    config = load_config('cct_mbv2-jpu_camvid-idd_20', {})
    model, settings = published_from(config, tmp_path, 'idd')
    assert settings.test_pipeline == config.test_dataloader.dataset.domains.idd.pipeline
    assert settings.tta_pipeline == config.tta_pipeline.idd
    assert model.num_classes == 7


def test_the_name_holds_the_hash_of_the_file(trained, published, tmp_path):
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    assert published == tmp_path / 'out' / f'cct-{digest[:8]}.pth'
    again = publish_checkpoint(str(trained.checkpoint), str(tmp_path / 'other'))
    assert again.name == f'other-{digest[:8]}.pth'
    assert [file.name for file in published.parent.iterdir()] == [published.name]
    # what torch.hub looks for in a file's name
    assert re.search(r'-([a-f0-9]*)\.', published.name)[1] == digest[:8]


def test_another_file_of_its_name_is_kept_unless_told(trained, published, tmp_path):
    target = str(tmp_path / 'out' / 'cct.pth')
    publish = partial(publish_checkpoint, str(trained.checkpoint), target)
    assert publish() == published  # the same bytes
    data = published.read_bytes()
    published.write_text('mine')
    with pytest.raises(UserError, match=r'cct-.*\.pth: exists; expected a new file, or --overwr'):
        publish()
    for mine in (lambda: published.write_text('mine'), lambda: published.symlink_to(published)):
        published.unlink()
        mine()
        with pytest.raises(UserError, match=r'cct-.*\.pth: .*; expected .* file to write'):
            publish(overwrite=True)
    published.unlink()
    published.write_bytes(data[:-1])
    assert publish(overwrite=True).read_bytes() == data


@pytest.mark.parametrize('read', [None, str, lambda file: load_config(str(file), {})])
def test_the_inferencer_does_not_complain(trained, published, tmp_path, monkeypatch, capfd, read):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(1).integers(0, 256, (48, 40, 3), np.uint8)
    model = read and read(str(trained.file))
    predictions = []
    capfd.readouterr()
    for weights in (str(published), str(trained.checkpoint)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            inferencer = MMSegInferencer(model, weights, device='cpu', show_progress=False)
            predictions.append(inferencer(image, return_datasamples=True).seg_logits.data)
        if weights == str(published):
            out = ''.join(capfd.readouterr())
            assert [str(w.message) for w in caught if 'checkpoint' in str(w.message)] == []
            assert inferencer.model.dataset_meta['classes'] == ('ground', 'thing', 'other')
        if model is None:
            break
    for complaint in ('do not match', 'missing keys', 'unexpected key', 'not safely'):
        assert complaint not in out
    if model is not None:
        assert torch.equal(*predictions)


def test_a_model_with_auxiliary_decoders_says_that_it_got_none(published, capfd):
    MMLogger.get_instance('loading', log_level='INFO')  # the current logger
    model = MODELS.build(tiny.model_config())
    before = model.auxiliary_head.proj.clone()
    load_checkpoint(model, str(published))
    out = ''.join(capfd.readouterr())
    assert 'has no auxiliary decoders: predictions do not need them' in out
    assert 'do not match' not in out
    assert torch.equal(model.auxiliary_head.proj, before)


def test_a_part_of_the_auxiliary_decoders_is_still_missed(trained, capfd):
    state = torch.load(str(trained.checkpoint), weights_only=False)['state_dict']
    del state['auxiliary_head.proj'], state['decode_head.conv_seg.weight']
    MMLogger.get_instance('loading_parts', log_level='INFO')
    load_state_dict(MODELS.build(tiny.model_config()), state)
    out = ''.join(capfd.readouterr())
    assert 'missing keys in source state_dict' in out
    assert 'decode_head.conv_seg.weight' in out and 'auxiliary_head.proj' in out


def test_a_checkpoint_without_meta_is_published(trained, tmp_path):
    state = torch.load(str(trained.checkpoint), weights_only=False)['state_dict']
    file = publish_content(tmp_path, {f'module.{name}': value for name, value in state.items()})
    published = torch.load(file, weights_only=False)
    assert published['meta'] == {} and 'backbone.conv1.weight' in published['state_dict']


def test_a_config_without_a_model_is_an_error(trained, tmp_path):
    content = torch.load(str(trained.checkpoint), weights_only=False)
    with pytest.raises(UserError, match=r'in\.pth: its config: no model; expected the config of'):
        publish_content(tmp_path, dict(content, meta=dict(cfg='seed = 1')))


def test_a_checkpoint_of_the_public_code_is_to_be_converted_first(tmp_path):
    with pytest.raises(UserError, match=r'in\.pth: has the public code.s names; expected'):
        publish_content(tmp_path, {name: torch.zeros(1) for name in SHARED_NAMES})
    assert list(tmp_path.iterdir()) == [tmp_path / 'in.pth']
