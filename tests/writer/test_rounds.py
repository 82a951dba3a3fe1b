import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.writer.rounds import (
    changes_since,
    latest_round,
    report_of_rounds,
    require_new_round,
)

TITLE = '# ResNet-50 on {}: {} labelled and 9 unlabelled images, 3 to validate on.'


def test_a_setting_of_more_masks_is_the_next_round(tmp_path):
    first = tmp_path / 'cct_mine.py'
    expected = [first, tmp_path / 'cct_mine-round2.py', tmp_path / 'cct_mine-round3.py']
    assert latest_round(first) is None
    for number, path in enumerate(expected, 2):
        path.write_text(f'{TITLE.format("data/mine", number)}\nmethod = "cct"\n')
        assert latest_round(first) == path
        with pytest.raises(UserError, match=f'{path}: exists for this number of masks; expec'):
            require_new_round(path, TITLE.format('data/mine', number))
        require_new_round(path, TITLE.format('./data/mine', number + 1))
        with pytest.raises(UserError, match=f'{path}: is a setting of .*data/mine; expected anoth'):
            require_new_round(path, TITLE.format('other/mine', number))
    assert report_of_rounds(first, first) == ()
    (command,) = report_of_rounds(first, expected[1])
    assert command.endswith(
        ' round1=work_dirs/cct_mine round2=work_dirs/cct_mine-round2 --out '
        'work_dirs/rounds_cct_mine'
    )


def test_a_setting_that_differs_from_the_round_before_is_told(tmp_path):
    path = tmp_path / 'cct_mine.py'
    path.write_text("# 2 masks\nclasses = ('a', 'b')\ntrain_cfg = dict(iters=10)\nsize = 4\n")
    same = "# 3 masks\nclasses = (\n    'a',\n    'b',\n)\ntrain_cfg = dict(iters=10)\nsize = 4\n"
    assert list(changes_since(path, same)) == []
    (change,) = changes_since(path, same.replace('10', '20').replace('size', 'crop'))
    assert change.startswith(f'crop, size, train_cfg: not as in {path}; expected the same')
