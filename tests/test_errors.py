import pytest
import torch

from mmseg_cct.errors import UserError


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
