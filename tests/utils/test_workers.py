import threading

import pytest
import torch

import mmseg_cct.plugin  # noqa: F401
from mmseg_cct.utils.workers import lacking


class _Locks(torch.utils.data.Dataset):
    """What no worker can pass on."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return threading.Lock()


def _as_it_is(batch):
    return batch


def test_a_batch_that_cannot_be_passed_on_ends_the_loading(capfd):
    loader = torch.utils.data.DataLoader(_Locks(), num_workers=1, collate_fn=_as_it_is)
    with pytest.raises(RuntimeError, match='DataLoader worker') as caught:
        next(iter(loader))
    assert 'num_workers=0' in lacking(caught.value)
    assert "a loading worker: TypeError: cannot pickle '_thread.lock'" in capfd.readouterr().err


def test_a_loader_without_queues_says_so_once(monkeypatch, capfd):
    def full(*_, **__):
        raise OSError(28, 'No space left on device')

    loader = torch.utils.data.DataLoader(_Locks(), num_workers=1)
    monkeypatch.setattr('torch.multiprocessing.Event', full)
    monkeypatch.setattr('multiprocessing.context.BaseContext.Event', full)
    with pytest.raises(OSError, match='No space left'):
        iter(loader)
    assert '_workers_done_event' not in capfd.readouterr().err


@pytest.mark.parametrize(
    'error', [RuntimeError('CUDA error: out of shared memory'), OSError(28, 'No space left')]
)
def test_other_errors_are_not_of_workers(error):
    assert lacking(error) is None
