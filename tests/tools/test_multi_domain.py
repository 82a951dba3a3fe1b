import json

import numpy as np
import pytest
import torch
import world
from mmseg.registry import MODELS
from PIL import Image

from mmseg_cct.apis.run import Run


@pytest.fixture(scope='module')
def joint(slow, tmp_path_factory):
    """The tiny config on two domains, trained."""
    return world.Run(tmp_path_factory.mktemp('joint'), world.multi_domain_config).trained()


@pytest.mark.parametrize('views', [(), ('--tta',)])
def test_one_test_of_all_domains_with_predictions(joint, tmp_path, views):
    """Test-time augmentation takes the pipeline of each domain."""
    out, work = tmp_path / 'out', tmp_path / 'work'
    options = '--out', out, '--work-dir', work
    joint.run('test', joint.file, joint.checkpoint, *options, *views)
    (path,) = work.glob('*/[0-9]*.json')
    assert json.loads(path.read_text()).keys() > {'first/mIoU', 'second/mIoU', 'mIoU_avg'}
    for domain, classes in (('first', 3), ('second', 5)):
        written = [np.asarray(Image.open(path)) for path in (out / domain).iterdir()]
        assert len(written) == 3
        assert all(each.shape == (32, 40) and each.max() < classes for each in written)


def test_predict_takes_the_domains_decoder_and_colours(joint, tmp_path):
    palette = world.SECOND['palette']
    checkpoint = torch.load(joint.checkpoint, weights_only=False)
    # Decoders that always say the last class.
    for name, value in checkpoint['state_dict'].items():
        if 'decode_head.upsample' in name and name.endswith('bias'):
            value[-4:] = 1000.0
    torch.save(checkpoint, tmp_path / 'last.pth')
    arguments = joint.file, tmp_path / 'last.pth', joint.images, '--out', tmp_path / 'out'
    assert joint.run('predict', *arguments, '--domain', 'second') == 0
    mask = Image.open(tmp_path / 'out' / 'masks' / 'l0.png')
    assert mask.getpalette()[: 3 * len(palette)] == np.ravel(palette).tolist()
    assert (np.asarray(mask) == len(palette) - 1).all()


def test_a_domain_is_a_run_like_any_other(joint, tmp_path):
    """The network of one domain predicts what the joint network predicts for it."""
    run = Run.open(joint.work_dir).of_domain('second')
    both = MODELS.build(Run.open(joint.work_dir).config.model).eval()
    both.load_state_dict(joint.load(joint.checkpoint)['state_dict'])
    images = torch.rand(1, 3, 32, 40)
    with torch.no_grad():
        expected = both.domains['second'].encode_decode(images, [dict(img_shape=(32, 40))])
        logits = run.load_model('cpu').encode_decode(images, [dict(img_shape=(32, 40))])
    assert torch.equal(logits, expected)
    assert all('decode.loss_ce' in values for values in run.scalars if 'loss' in values) is False
    assert any('decode.loss_ce' in values for values in run.scalars)


@pytest.mark.parametrize(
    ('command', 'written'),
    [
        ('next_batch {0.work_dir} -n 2', 'review.html'),
        ('report a={0.work_dir}', 'report.html'),
    ],
)
def test_tools_for_one_data_set_take_a_domain(joint, tmp_path, capsys, command, written):
    arguments = *command.format(joint).split(), '--out', tmp_path / 'out'
    assert joint.tool(*arguments) == 2
    assert '--domain is missing' in capsys.readouterr().err.splitlines()[-1]
    assert joint.tool(*arguments, '--domain', 'second') == 0
    assert (tmp_path / 'out' / written).is_file()
