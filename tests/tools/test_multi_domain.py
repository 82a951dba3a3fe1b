"""Tools on a training of two domains."""

import json

import numpy as np
import pytest
import torch
import world
from PIL import Image

from mmseg_cct.apis.prediction import predict_images
from mmseg_cct.apis.train import prepare_training
from mmseg_cct.errors import UserError


@pytest.fixture(scope='module')
def joint(slow, tmp_path_factory):
    """The tiny config on two domains, trained."""
    return world.Run(tmp_path_factory.mktemp('joint'), world.multi_domain_config).trained()


def metrics_of(work_dir):
    (path,) = work_dir.glob('*/[0-9]*.json')
    return json.loads(path.read_text())


def test_one_test_of_all_domains_with_predictions(joint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joint.run(
        'test', joint.file, joint.checkpoint, '--work-dir', 'w', '--out', 'png',
        '--show-dir', 'painted',
    )  # fmt: skip
    metrics = metrics_of(tmp_path / 'w')
    mean = (metrics['first/mIoU'] + metrics['second/mIoU']) / 2
    assert metrics['mIoU_avg'] == pytest.approx(mean, abs=0.01)
    for domain, classes in (('first', 3), ('second', 5)):
        written = [np.asarray(Image.open(path)) for path in (tmp_path / 'png' / domain).iterdir()]
        assert len(written) == 3
        assert all(each.shape == (32, 40) and each.max() < classes for each in written)
    assert len(list((tmp_path / 'painted').rglob('*.png'))) == 6


def test_tta_takes_the_pipeline_of_each_domain(joint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joint.run('test', joint.file, joint.checkpoint, '--work-dir', 'w', '--tta')
    assert {'first/mIoU', 'second/mIoU', 'mIoU_avg'} <= metrics_of(tmp_path / 'w').keys()


@pytest.mark.parametrize('domain', ['first', 'second'])
@pytest.mark.parametrize('with_meta', [True, False])
def test_predict_takes_the_domains_decoder_and_colours(joint, tmp_path, domain, with_meta):
    palette = dict(first=world.PALETTE, second=world.SECOND['palette'])[domain]
    checkpoint = torch.load(joint.checkpoint, weights_only=False)
    if not with_meta:
        del checkpoint['meta']['dataset_meta']
    # Decoders that always say the last class.
    for name, value in checkpoint['state_dict'].items():
        if 'decode_head.upsample' in name and name.endswith('bias'):
            value[-4:] = 1000.0
    torch.save(checkpoint, tmp_path / 'last.pth')
    arguments = (str(joint.file), str(tmp_path / 'last.pth'), str(joint.images))
    summary = predict_images(*arguments, str(tmp_path / 'out'), domain=domain, device='cpu')
    assert summary.written == 8
    mask = Image.open(tmp_path / 'out' / 'masks' / 'l0.png')
    assert mask.getpalette()[: 3 * len(palette)] == np.ravel(palette).tolist()
    assert (np.asarray(mask) == len(palette) - 1).all()


def test_predict_on_the_command_line(joint, tmp_path, capsys):
    arguments = (joint.file, joint.checkpoint, joint.images, '--out', tmp_path / 'out')
    assert joint.run('predict', *arguments, '--domain', 'second') == 0
    assert '8 written' in capsys.readouterr().out
    for domain, message in (
        ([], 'error: --domain is missing: expected one of first, second, as in model.domains of'),
        (['--domain', 'third'], 'error: --domain third: expected one of first, second, as in'),
        (['--domain', 'first'], 'error: --out: '),  # holds those of the second domain
    ):
        with pytest.raises(SystemExit) as stop:
            joint.run('predict', *arguments, *domain)
        assert stop.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(message)


@pytest.mark.parametrize(
    ('tool', 'takes'),
    [
        ('next_batch', 'WORK_DIR'),
        ('analyze_clusters', 'CONFIG'),
        ('report', 'a=WORK_DIR'),
    ],
)
def test_tools_that_take_one_data_set_say_so(joint, tmp_path, capsys, tool, takes):
    arguments = [joint.file, joint.checkpoint]
    if takes != 'CONFIG':
        arguments = [takes.replace('WORK_DIR', str(joint.work_dir))]
    with pytest.raises(SystemExit) as stop:
        joint.run(tool, *arguments, '--out', tmp_path / 'out')
    assert stop.value.code == 2
    place = joint.file if takes == 'CONFIG' else joint.checkpoint
    expected = f'error: {place}: several domains (first, second); expected a config of one'
    assert capsys.readouterr().err.splitlines()[-1] == expected
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('key', 'value', 'match'),
    [
        ('train_dataloader.batch_size', 4,
         r'^train_dataloader.sampler.batch_size=2: expected 4, as in train_dataloader$'),
        ('val_dataloader.dataset.domains.third', world.validated('.'),
         r'^val_dataloader.dataset.domains.third: no such domain in the model; expected .* second'),
        ('val_dataloader.batch_size', 2,
         '^val_dataloader.batch_size=2: expected 1, as a batch must not mix domains$'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_before_training(joint, key, value, match):
    with pytest.raises(UserError, match=match):
        prepare_training(str(joint.file), options={key: value})
