"""Images of 12 bits and of more channels, from new_config to the exported network."""

import numpy as np
import pytest
from PIL import Image
from tiff import tiff_bytes
from world import run_tool

from mmseg_cct.config.load import load_config

# Values of 12 bits in five channels of three classes.
MEANS = np.array([[200, 800, 900, 3000, 90], [800, 500, 300, 700, 4000], [500, 300, 900, 9, 200]])


@pytest.mark.slow
def test_the_whole_round(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for folder, count, labeled in (('data', 5, 3), ('data/val', 2, 2)):
        for part in ('images', 'masks'):
            (tmp_path / folder / part).mkdir(parents=True)
        for index in range(count):
            mask = rng.integers(0, 3, (6, 8)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
            pixels = (MEANS[mask] + rng.integers(0, 90, (48, 64, 5))).astype('uint16')
            file = tmp_path / folder / 'images' / f'{index}.tif'
            file.write_bytes(tiff_bytes(pixels, separate=True))
            if index < labeled:
                Image.fromarray(mask).save(tmp_path / folder / 'masks' / f'{index}.png')
    options = ('--classes', 'a', 'b', 'c', '--from-scratch', '--iters', 2, '--batch-size', 2)
    run_tool('new_config', 'data', *options, '--size', '64x48', '--out', 'made')
    assert '5 channels of 16 bits' in capsys.readouterr().out

    setting = 'made/cct-strong_mbv2_data.py'
    config = load_config(setting, {})
    assert len(config.model.data_preprocessor.mean) == 5
    workers = [f'{key}_dataloader.num_workers=0' for key in ('train', 'val')]
    run_tool('train', setting, '--work-dir', 'run', '--cfg-options', *workers)
    assert run_tool('predict', 'run', 'data/val/images', '--out', 'seen') == 0
    assert np.array(Image.open('seen/masks/0.png')).shape == (48, 64)
    assert np.array(Image.open('seen/overlays/0.png')).std() > 0
    pytest.importorskip('onnxruntime', reason='runs the exported file')
    run_tool('publish_model', 'run', 'small.pth', '--onnx')
    assert list(tmp_path.glob('small*.onnx'))  # its logits are PyTorch's
