"""A mistake at each stage of a run: one line names the key or file, an exit code, nothing lost."""

import shutil

import cv2
import numpy as np
import pytest
import torch

TEST = 'test_dataloader.dataset'
TRAIN = ('train', 'tiny.py', '--work-dir', 'work')


@pytest.fixture
def spoiled(cct, trained):
    """Beside the data, weights that do not fit, and masks and images that do not do."""
    content = trained.load(trained.checkpoint)
    weights = [*content['state_dict'].items()]
    torch.save({**content, 'state_dict': dict(weights[::3])}, 'few.pth')
    for name in ('masks', 'val_masks'):
        shutil.copytree(cct.data / name, cct.data / f'bad_{name}')
    cv2.imwrite(str(cct.data / 'bad_masks/l1.png'), np.full((32, 40), 7, np.uint8))
    (cct.data / 'bad_val_masks/v1.png').unlink()
    return cct


# stage: (what is set, what the line names); other mistakes of a stage are in its own room
TABLE = {
    'the build': ({'model.backbone.depth': 7}, 'depth 7'),
    'weights to start from': ({'load_from': 'few.pth'}, "load_from='few.pth'"),
    'files': ({'train_dataloader.dataset.labeled.mask_dir': 'bad_masks'}, 'masks/l1.png'),
    'the first batch': ({'model.decode_head.stride': 4}, 'decode_head.stride=4'),
    'test: files': ({f'{TEST}.subset': 'all', f'{TEST}.mask_dir': 'bad_val_masks'}, 'v1.png'),
}


@pytest.mark.parametrize('name', TABLE)
def test_one_line_and_an_exit_code(name, spoiled, trained, capfd):
    changes, named = TABLE[name]
    spoiled.config.merge_from_dict(changes)
    spoiled.write()
    kept = spoiled.folder / 'work' / 'notes.txt'
    kept.parent.mkdir()
    kept.write_bytes(b'mine')
    test = 'test', 'tiny.py', trained.checkpoint, '--work-dir', 't'
    assert spoiled.tool(*(test if name.startswith('test') else TRAIN)) != 0
    out, err = capfd.readouterr()
    assert 'Traceback' not in out + err
    lines = [line for line in err.splitlines() if 'error: ' in line]
    assert any(named in line for line in lines), lines
    assert kept.read_bytes() == b'mine'


def test_a_bug_keeps_its_traceback(cct, monkeypatch):
    """At the first batch too, where what a library raises is a line."""

    def loss(self, *_):
        return {}['mine']

    monkeypatch.setattr('mmseg_cct.models.CCTSegmentor.loss', loss)
    with pytest.raises(KeyError, match='mine'):
        cct.tool(*TRAIN)
