"""A mistake at each stage of a run: one line names the key or file, an exit code, nothing lost."""

import pytest

LABELED = 'train_dataloader.dataset.labeled'
TRAIN = ('train', 'tiny.py', '--work-dir', 'work')


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'model.backbone.depth': 7}, 'depth 7'),  # the build
        ({f'{LABELED}.mask_dir': 'val_masks'}, 'val_masks'),  # files
        ({'model.decode_head.stride': 4}, 'decode_head.stride=4'),  # the first batch
    ],
)
def test_one_line_and_an_exit_code(changes, named, cct, capfd):
    """Other mistakes of a stage are in its own room."""
    cct.config.merge_from_dict(changes)
    cct.write()
    kept = cct.folder / 'work' / 'notes.txt'
    kept.parent.mkdir()
    kept.write_bytes(b'mine')
    assert cct.tool(*TRAIN) != 0
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
