import pytest
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.utils.cli import user_errors_as_one_line


class _FailingDataset(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise UserError('a.png: label id 7 outside the classes; expected 0 to 2')


def test_message_is_kept():
    assert str(UserError('a.png: bad; expected good')) == 'a.png: bad; expected good'


def test_error_in_a_worker_stays_one_line():
    batches = iter(torch.utils.data.DataLoader(_FailingDataset(), num_workers=1))
    with pytest.raises(UserError) as caught:
        next(batches)
    batches._shutdown_workers()  # left to the garbage collector, it takes 5 s
    assert str(caught.value) == 'a.png: label id 7 outside the classes; expected 0 to 2'


def test_tool_ends_with_one_line_and_code_2(capsys):
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')
    assert caught.value.code == 2
    assert capsys.readouterr() == ('', 'error: a.png: bad; expected good\n')


def test_another_rank_speaks_after_it_has_left_rank_0_the_time_to(capsys, monkeypatch):
    waited = []
    monkeypatch.setenv('RANK', '1')
    monkeypatch.setattr(
        'mmseg_cct.utils.cli.time.sleep', lambda s: waited.append((s, capsys.readouterr().err))
    )
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')
    assert caught.value.code == 2
    assert waited == [(5.0, '')]
    assert capsys.readouterr().err == 'error: a.png: bad; expected good\n'


def test_other_errors_pass():
    with pytest.raises(KeyError), user_errors_as_one_line():
        raise KeyError('bug')
