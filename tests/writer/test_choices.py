"""What a round takes from the one before."""

import pytest

from mmseg_cct.writer.choices import Choices, choices_before, options_line


def write(folder, name, choices):
    folder.mkdir(exist_ok=True)
    path = folder / f'{name}.py'
    path.write_text(f'# a title\n{options_line(choices)}\nclasses = ()\n')
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
