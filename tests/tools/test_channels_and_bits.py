"""Images of 12 bits and of more channels, from new_config to the exported network."""

import numpy as np
import pytest
from PIL import Image
from tiff import tiff_bytes
from world import run_tool

from mmseg_cct.config.load import load_config

# Values of 12 bits in five channels of three classes; the first three show dark images in 8 bits.
MEANS = np.array([[200, 800, 900, 3000, 90], [800, 500, 300, 700, 4000], [500, 300, 900, 9, 200]])
KINDS = {
    '12 bits': dict(channels=3, colours=2),
    'four of 8 bits': dict(channels=4, colours=2, extra=(0,), shift=4, dtype='uint8'),
    'five planes': dict(channels=5, separate=True),
}


def draw(root, channels, shift=0, dtype='uint16', **kind):
    rng = np.random.default_rng(0)
    for folder, count, labeled in ((root, 5, 3), (root / 'val', 2, 2)):
        for part in ('images', 'masks'):
            (folder / part).mkdir(parents=True)
        for index in range(count):
            mask = rng.integers(0, 3, (6, 8)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
            pixels = (MEANS[mask] + rng.integers(0, 90, (48, 64, 5)))[..., :channels] >> shift
            file = folder / 'images' / f'{index}.tif'
            file.write_bytes(tiff_bytes(pixels.astype(dtype), **kind))
            if index < labeled:
                Image.fromarray(mask).save(folder / 'masks' / f'{index}.png')


@pytest.mark.slow
@pytest.mark.parametrize('kind', KINDS)
def test_the_whole_round(kind, tmp_path, capsys, monkeypatch):
    if kind == 'five planes':
        pytest.importorskip('tifffile')
    monkeypatch.chdir(tmp_path)
    draw(tmp_path / 'data', **KINDS[kind])
    channels = KINDS[kind]['channels']
    options = ('--classes', 'a', 'b', 'c', '--from-scratch', '--iters', 2, '--batch-size', 2)
    run_tool('new_config', 'data', *options, '--size', '64x48', '--out', 'made')
    said = capsys.readouterr().out
    assert f'{channels} channels of {"8" if "8" in kind else "16"} bits' in said

    setting = 'made/cct-strong_mbv2_data.py'
    config = load_config(setting, {})
    assert len(config.model.data_preprocessor.mean) == channels
    workers = [f'{key}_dataloader.num_workers=0' for key in ('train', 'val')]
    run_tool('train', setting, '--work-dir', 'run', '--cfg-options', *workers)
    assert run_tool('predict', 'run', 'data/val/images', '--out', 'seen') == 0
    assert len(list((tmp_path / 'seen/masks').iterdir())) == 2

    # what is predicted is what is exported
    predicted = np.array(Image.open('seen/masks/0.png'))
    assert predicted.shape == (48, 64)
    assert np.array(Image.open('seen/overlays/0.png')).std() > 0
    pytest.importorskip('onnxruntime', reason='runs the exported file')
    run_tool('publish_model', 'run', 'small.pth', '--onnx')
    assert list(tmp_path.glob('small*.onnx'))  # its logits are PyTorch's
