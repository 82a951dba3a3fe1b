"""What a round takes from the one before, and what it is called."""

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.writer import rounds
from mmseg_cct.writer.rounds import Choices, choices_before

TITLE = '# ResNet-50 on {}: {} labelled and 9 unlabelled images, 3 to validate on.'


def test_a_setting_of_more_masks_is_the_next_round(tmp_path):
    first = tmp_path / 'cct_mine.py'
    expected = [first, tmp_path / 'cct_mine-round2.py', tmp_path / 'cct_mine-round3.py']
    assert rounds.latest_round(first) is None
    for number, path in enumerate(expected, 2):
        path.write_text(f'{TITLE.format("data/mine", number)}\nmethod = "cct"\n')
        assert rounds.latest_round(first) == path
        with pytest.raises(UserError, match=f'{path}: exists for this number of masks; expec'):
            rounds.require_new_round(path, TITLE.format('data/mine', number))
        rounds.require_new_round(path, TITLE.format('./data/mine', number + 1))
        with pytest.raises(UserError, match=f'{path}: is a config of .*data/mine; expected anoth'):
            rounds.require_new_round(path, TITLE.format('other/mine', number))
    assert rounds.report_of_rounds(first, first, 'work_dirs') == ()
    (command,) = rounds.report_of_rounds(first, expected[1], 'work_dirs')
    runs = ' round1=work_dirs/cct_mine round2=work_dirs/cct_mine-round2'
    assert command.endswith(f'{runs} --out work_dirs/rounds_cct_mine')


def test_a_setting_that_differs_from_the_round_before_is_told(tmp_path):
    path = tmp_path / 'cct_mine.py'
    path.write_text("# 2 masks\nclasses = ('a', 'b')\ntrain_cfg = dict(iters=10)\nsize = 4\n")
    same = "# 3 masks\nclasses = (\n    'a',\n    'b',\n)\ntrain_cfg = dict(iters=10)\nsize = 4\n"
    assert list(rounds.changes_since(path, same)) == []
    (change,) = rounds.changes_since(path, same.replace('10', '20').replace('size', 'crop'))
    assert change.startswith(f'crop, size, train_cfg: not as in {path}; expected the same')


def write(folder, name, choices):
    path = folder / f'{name}.py'
    path.write_text(f'# a title\n{rounds.options_line(choices)}\nclasses = ()\n')
    return path


def test_a_round_has_the_options_of_the_latest_unless_others_are_given(tmp_path):
    given = Choices(('a', 'b'), size=(96, 64), iters=80, from_scratch=True, force=True)
    write(tmp_path, 'cct-strong_mbv2_mine', Choices(iters=10))
    latest = write(tmp_path, 'cct-strong_mbv2_mine-round2', given)
    write(tmp_path, 'unimatch_r50_other', Choices(iters=20))
    file, before = choices_before('data/mine', str(tmp_path), dict(iters=4000, weights='w.pth'))
    assert file == latest
    # 4000 is the default, yet given; weights exclude from_scratch; force is for one call
    assert before == Choices(('a', 'b'), size=(96, 64), iters=4000, weights='w.pth')


def test_method_and_backbone_are_those_of_the_only_setting(tmp_path):
    write(tmp_path, 'unimatch_mit-b0_mine', Choices(iters=20, method='unimatch'))
    _, before = choices_before('data/mine', str(tmp_path), {})
    assert before == Choices(method='unimatch', backbone='mit-b0', iters=20)
    write(tmp_path, 'supervised_mbv2_mine', Choices(iters=30))
    assert choices_before('data/mine', str(tmp_path), {}) is None  # of which?
    _, before = choices_before('data/mine', str(tmp_path), dict(method='supervised'))
    assert before == Choices(method='supervised', iters=30)
    assert choices_before('data/mine', str(tmp_path), dict(method='cct')) is None


@pytest.mark.parametrize('line', ['', '# Options: {"iters": 8', '# Options: {"gone": 8}'])
def test_an_edited_setting_gives_what_it_can(tmp_path, line):
    (tmp_path / 'cct_mbv2_mine.py').write_text(f'{line}\n')
    _, before = choices_before('data/mine', str(tmp_path), {})
    assert before == Choices(method='cct')
