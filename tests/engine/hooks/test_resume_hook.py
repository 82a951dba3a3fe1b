"""Which checkpoint a resumed training goes on from; what is restored is in tests/trust."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.hooks import CheckpointHook

from mmseg_cct.engine.hooks import ResumeHook


@pytest.fixture
def messages(monkeypatch):
    lines = []
    monkeypatch.setattr('mmseg_cct.utils.log.print_log', lambda line, **_: lines.append(line))
    return lines


def before_run(work_dir, resume=True, load_from=None):
    hook = CheckpointHook(by_epoch=False, filename_tmpl='ck_{}.pth')
    runner = SimpleNamespace(
        work_dir=str(work_dir), hooks=[hook], _resume=resume, _load_from=load_from
    )
    ResumeHook().before_run(runner)
    return runner._resume, runner._load_from


def test_it_is_the_newest_whole_one_under_the_checkpoint_hooks_name(tmp_path, messages):
    for number in (2, 10):
        torch.save(dict(state_dict=dict(a=torch.zeros(9))), tmp_path / f'ck_{number}.pth')
    assert before_run(tmp_path) == (True, str(tmp_path / 'ck_10.pth'))
    (tmp_path / 'ck_10.pth').write_bytes(b'')
    (tmp_path / 'last_checkpoint').write_text('ck_10.pth')
    assert before_run(tmp_path) == (True, str(tmp_path / 'ck_2.pth'))
    assert len(messages) == 1  # of the damaged one


def test_one_that_is_named_stays(tmp_path, messages):
    assert before_run(tmp_path, load_from='x.pth') == (True, 'x.pth')
    assert before_run(tmp_path, resume=False) == (False, None)
    assert not messages


def test_without_one_the_training_starts_at_zero(tmp_path, messages):
    assert before_run(tmp_path) == (False, None)
    assert messages == [
        f'--resume: no whole checkpoint in {tmp_path}, training starts at iteration 0'
    ]
