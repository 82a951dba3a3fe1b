"""Whose exception it is decides whether its traceback is shown."""

import pytest
from torch.utils.data import DataLoader

from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line


def one_line():
    return library_errors_as_one_line('model.neck', 'cannot be built', 'another')


@pytest.mark.parametrize('error', [KeyError('mine'), OSError('disk'), UserError('line')])
def test_other_errors_stay(error):
    with pytest.raises(type(error)) as caught, one_line():
        raise error
    assert caught.value is error


@pytest.mark.parametrize('workers', [0, 1])
def test_a_library_s_error_is_a_line_in_a_loading_worker_too(workers):
    batches = iter(DataLoader([object()] * 2, num_workers=workers))
    with pytest.raises(UserError) as caught, one_line():
        next(batches)
    if workers:
        batches._shutdown_workers()  # kept alive by the error, they are waited for 5 s
    (problem,) = caught.value.problems
    assert problem.key == 'model.neck' and 'TypeError: default_collate' in problem.found
    assert isinstance(caught.value.__cause__, TypeError)


def test_errors_of_this_package_stay():
    with pytest.raises(AttributeError), one_line():
        find_images('.', suffix=3)
