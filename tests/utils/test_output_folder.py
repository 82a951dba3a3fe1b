import os

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.utils.output_folder import OutputFolder

RECORD = 'tool.json'


def test_a_new_an_empty_and_the_own_folder_are_taken(tmp_path):
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty/.DS_Store').write_text('x')
    for folder in (tmp_path / 'new', tmp_path / 'empty') * 2:
        with OutputFolder(folder, RECORD):
            (folder / 'result').write_text('x')
        assert (folder / RECORD).is_file()


def test_other_folders_are_refused_and_stay(tmp_path):
    (tmp_path / 'a.png').write_text('x')
    for enter in (OutputFolder.claim, OutputFolder.__enter__):
        with pytest.raises(UserError, match=r'--out: .* holds a\.png, which .* no tool\.json'):
            enter(OutputFolder(tmp_path, RECORD))
        with pytest.raises(UserError, match=r'--out: .* lies in .*, which is read'):
            enter(OutputFolder(tmp_path / 'new', RECORD, {tmp_path}))
        with pytest.raises(UserError, match=r'--out: .*a\.png is a file; expected a folder'):
            enter(OutputFolder(tmp_path / 'a.png', RECORD))
    assert os.listdir(tmp_path) == ['a.png']


@pytest.mark.parametrize(
    ('now', 'message'),
    [
        (dict(checkpoint='b.pth'), r'out was made with checkpoint=a\.pth, now it is b'),
        (dict(checkpoint='a.pth', domain='x'), r'made with domain=None, now it is x'),
    ],
)
def test_other_settings_are_refused(tmp_path, now, message):
    for _ in range(2):
        OutputFolder(tmp_path / 'out', RECORD, made_with=dict(checkpoint='a.pth')).claim()
    before = (tmp_path / 'out' / RECORD).read_text()
    with pytest.raises(UserError, match=message):
        OutputFolder(tmp_path / 'out', RECORD, made_with=now).claim()
    assert (tmp_path / 'out' / RECORD).read_text() == before


def test_two_at_once_are_told_and_what_a_killed_run_left_half_written_goes(tmp_path):
    OutputFolder(tmp_path / 'out', RECORD).claim()
    (tmp_path / 'out/masks').mkdir()
    (tmp_path / 'out/masks/.12-ab.part').touch()
    with OutputFolder(tmp_path / 'out', RECORD):
        assert not any((tmp_path / 'out/masks').iterdir())
        with pytest.raises(UserError, match='out: in use by another run'):
            OutputFolder(tmp_path / 'out', RECORD).__enter__()


def test_outputs_of_changed_inputs_go(tmp_path):
    (tmp_path / 'out/labels/more').mkdir(parents=True)
    names = ('a', 'b', 'more/c', 'd')
    files = {name: tmp_path / 'out/labels' / f'{name}.png' for name in names}
    (tmp_path / 'out' / RECORD).write_text('{"made_with": {}, "inputs": {}}')
    folder = OutputFolder(tmp_path / 'out', RECORD)

    def remaining(inputs):
        for file in files.values():
            file.touch()
        return folder.remaining(inputs, 'labels')

    first = {'a': [1, 2], 'b': [3, 4], 'more/c': None}
    assert remaining(first) == ['a', 'b']
    assert remaining(first) == []
    assert remaining({'a': [1, 2], 'b': [3, 5], 'more/c': [0, 0]}) == ['b', 'more/c']
    assert remaining({'a': [1, 2], 'd': [7, 7]}) == ['d']
    # what is not asked for stays known
    assert remaining({'b': [3, 5]}) == []
    (tmp_path / 'out' / RECORD).write_text('{"a"')
    with pytest.raises(UserError, match=r'tool\.json: damaged, or of another version'):
        remaining({'b': [3, 5]})
    assert all(file.exists() for file in files.values())
