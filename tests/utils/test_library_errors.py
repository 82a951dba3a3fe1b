"""Whose exception it is decides whether its traceback is shown."""

import pytest
from torch.utils.data import DataLoader

from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line


class FailsItself:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise KeyError('mine')


def one_line():
    return library_errors_as_one_line('model.neck', 'cannot be built', 'another')


def first_batch(dataset, workers):
    """Loads a batch and ends the worker: kept alive by an error, it is waited for 5 s."""
    batches = iter(DataLoader(dataset, num_workers=workers))
    try:
        next(batches)
    finally:
        if workers:
            batches._shutdown_workers()


@pytest.mark.parametrize('workers', [0, 1])
def test_a_library_s_error_is_a_line_in_a_loading_worker_too(workers):
    with pytest.raises(UserError) as caught, one_line():
        first_batch([object()] * 2, workers)
    (problem,) = caught.value.problems
    assert problem.key == 'model.neck' and 'TypeError: default_collate' in problem.found
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize('error', [KeyError('mine'), OSError('disk'), UserError('line')])
def test_other_errors_stay(error):
    with pytest.raises(type(error)) as caught, one_line():
        raise error
    assert caught.value is error


def test_errors_of_this_package_and_in_a_worker_of_the_user_s_code_stay():
    with pytest.raises(AttributeError), one_line():
        find_images('.', suffix=3)
    with pytest.raises(KeyError, match='mine'), one_line():
        first_batch(FailsItself(), 1)
